// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How many instructions the verifier processes for each program.  It gives up at a million, and
 * kernels count differently, so there must be room.
 *
 *	verifier_test [OBJECT...]
 *
 * Those that use saina.ko load only where it is loaded.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <string.h>
#include <unistd.h>
#include "lib/beside.h"
#include "lib/tap.h"

#define MOST 900000u

static void check_program(const char *object, const struct bpf_program *prog)
{
	struct bpf_prog_info info = { 0 };
	__u32 len = sizeof(info);
	int err = bpf_obj_get_info_by_fd(bpf_program__fd(prog), &info, &len);

	tap_note("%s %s: %u instructions processed", object, bpf_program__name(prog),
		 info.verified_insns);
	tap_ok(!err && info.verified_insns && info.verified_insns <= MOST,
	       "%s, %s: the verifier processes at most %u instructions", object,
	       bpf_program__name(prog), MOST);
}

static void check_object(const char *name)
{
	struct bpf_program *prog;
	struct bpf_object *obj;
	char beside[64], path[PATH_MAX];

	snprintf(beside, sizeof(beside), "../%s", name);
	obj = bpf_object__open_file(path_beside(path, beside), NULL);
	if (!tap_ok(obj && !bpf_object__load(obj), "%s loads", name))
		return;
	bpf_object__for_each_program(prog, obj)
		check_program(name, prog);
	bpf_object__close(obj);
}

int main(int argc, char **argv)
{
	if (geteuid())
		tap_skip_all("needs root");
	for (int i = 1; i < argc; i++)
		check_object(argv[i]);
	if (argc < 2) {
		check_object("saina_xdp.bpf.o");
		check_object("saina_tc.bpf.o");
	}
	return tap_done();
}
