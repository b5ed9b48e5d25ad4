// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Gloo as a contender of `make bench', over TCP: its ring, which PyTorch uses, and
 * halving-doubling.
 *
 *	bench-gloo SOCKET RANK RANKS INTERFACE DIR
 *
 * DIR: of gloo's file store, by which the ranks find one another.
 */
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include "../../../tools/bench/serve.h"

static std::shared_ptr<gloo::rendezvous::Context> context;
static std::unique_ptr<gloo::Algorithm> halving; /* else the ring */
static std::string sentence;

template <typename F> static const char *guarded(F f)
{
	try {
		f();
		return nullptr;
	} catch (const std::exception &e) {
		sentence = std::string("gloo: ") + e.what();
		return sentence.c_str();
	}
}

static const char *prepare(const char *algorithm, float *buf, size_t n)
{
	return guarded([&] {
		if (!strcmp(algorithm, "halving"))
			halving.reset(new gloo::AllreduceHalvingDoubling<float>(context, { buf }, n));
		else if (strcmp(algorithm, "ring"))
			throw std::runtime_error(std::string("no algorithm ") + algorithm);
	});
}

static const char *reduce(float *buf, size_t n, enum op)
{
	return guarded([&] {
		if (halving) {
			halving->run();
			return;
		}
		gloo::AllreduceOptions opts(context);

		opts.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
		opts.setOutput(buf, n);
		opts.setReduceFunction([](void *out, const void *a, const void *b, size_t count) {
			gloo::sum<float>(out, a, b, count);
		});
		gloo::allreduce(opts);
	});
}

static void rest()
{
	halving.reset();
}

int main(int argc, char **argv)
{
	struct contender c = { prepare, reduce, rest, "", nullptr };
	gloo::transport::tcp::attr attr;
	const char *wrong;

	if (argc != 6) {
		fprintf(stderr, "usage: bench-gloo SOCKET RANK RANKS INTERFACE DIR (started by selftests/bench)\n");
		return 2;
	}
	wrong = guarded([&] {
		attr.iface = argv[4];
		auto device = gloo::transport::tcp::CreateDevice(attr);
		gloo::rendezvous::FileStore store(argv[5]);

		context = std::make_shared<gloo::rendezvous::Context>(atoi(argv[2]), atoi(argv[3]));
		context->setTimeout(std::chrono::minutes(5));
		context->connectFullMesh(store, device);
	});
	if (wrong) {
		fprintf(stderr, "bench-gloo: %s\n", wrong);
		return 1;
	}
	return serve(&c, argv[1], atoi(argv[2]), atoi(argv[3]));
}
