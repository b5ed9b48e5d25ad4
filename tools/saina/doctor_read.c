// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * saina doctor: reads files and the output of commands.
 */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "doctor_check.h"

bool doc_read_line(const char *path, char *text, size_t size)
{
	FILE *f = fopen(path, "re");
	bool ok;

	if (!f)
		return false;
	ok = !!fgets(text, (int)size, f);
	fclose(f);
	if (ok)
		text[strcspn(text, "\n")] = 0;
	return ok;
}

int doc_run(const char *command, char *text, size_t size)
{
	FILE *f = popen(command, "re");
	size_t n;
	int status;

	if (!f)
		return -1;
	n = fread(text, 1, size - 1, f);
	text[n] = 0;
	while (fgetc(f) != EOF)
		;
	status = pclose(f);
	return WIFEXITED(status) && WEXITSTATUS(status) != 127 ? WEXITSTATUS(status) : -1;
}
