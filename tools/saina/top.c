// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * saina top - a live view of jobs and workers: who is late, by how much, k, flips, goodput.
 * top_data.c reads the data; `saina monitor' is for pipes.
 */
#include <curses.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "monotonic.h"
#include "signals.h"
#include "top_data.h"

#define SPARK_COLUMNS 20 /* width of a sparkline */

/**
 * struct screen - @from: first visible line, counted from the first job
 */
struct screen {
	int from, line;
	enum sort { BY_NUMBER, BY_LATE, BY_MISSED, BY_RATE, SORTS } sort;
	bool utf8, paused, help;
};

static const char *const sort_names[] = { "number", "LATE ms", "MISSED", "GRADIENT/s" };

static void draw_line(struct screen *s, int attrs, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Draws a line below the header, cut at the right edge. */
static void draw_line(struct screen *s, int attrs, const char *fmt, ...)
{
	int y = s->line++ - s->from + 2;
	char text[512];
	va_list ap;

	if (y < 2 || y >= LINES)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	attrset(attrs);
	/* curses stops at the edge, also with multi-byte characters */
	mvaddstr(y, 0, text);
	attrset(A_NORMAL);
}

/* Formats the last samples, scaled from 0 to @max (0: to the largest sample). */
static const char *format_sparkline(const struct screen *s, const struct history *h, double max, char *text)
{
	static const char *const blocks[] = { "\u2581", "\u2582", "\u2583", "\u2584",
					      "\u2585", "\u2586", "\u2587", "\u2588" };
	static const char ascii[] = "_.-:=+*#";
	unsigned int n = h->n < SPARK_COLUMNS ? h->n : SPARK_COLUMNS, i;
	size_t len = 0;
	int level;

	for (i = 0; max <= 0 && i < h->n; i++)
		if (h->v[i] > -max)
			max = -h->v[i];
	max = max < 0 ? -max : max;
	for (i = 0; i < n; i++) {
		float v = h->v[(h->next + HISTORY - n + i) % HISTORY];

		level = max > 0 ? (int)(v / max * 7.99) : 0;
		level = level < 0 ? 0 : level > 7 ? 7 : level;
		if (s->utf8)
			len += sprintf(text + len, "%s", blocks[level]);
		else
			text[len++] = ascii[level];
	}
	text[len] = 0;
	return text;
}

static const char *format_rate(double v, char *text)
{
	static const char units[] = " kMGT";
	int u = 0;

	while (v >= 1000 && u < 4) {
		v /= 1000;
		u++;
	}
	sprintf(text, "%.*f %c", v < 10 ? 2 : v < 100 ? 1 : 0, v, units[u]);
	return text;
}

static void draw_worker(struct screen *s, const struct top_worker *w)
{
	const struct saina_worker_attrs *a = &w->attrs;
	char line[4 * SPARK_COLUMNS], gradients[32], wait[32] = "-";
	bool bad = a->state != SAINA_WORKER_STATE_ALIVE;

	if (w->wait >= 0.001)
		snprintf(wait, sizeof(wait), "%.3f s", w->wait);
	draw_line(s, bad ? A_BOLD : A_NORMAL, "  %3u %-16.16s %-5s %5.1f%% %6.1f%% %8.1f %10s %10s %7.1f %7.1f  %s",
		  a->id, a->name, SAINA_ENUM_NAME(saina_worker_state_names, a->state), 100 * w->missed, 100 * w->last, w->late_ms, wait,
		  format_rate(w->rate, gradients), w->resent, w->drops, format_sparkline(s, &w->misses, 1, line));
}

static double sort_key(enum sort sort, const struct top_worker *w)
{
	return sort == BY_LATE ? w->late_ms : sort == BY_MISSED ? w->missed : sort == BY_RATE ? w->rate : 0;
}

/* Sorts the workers, the largest key first, equal ones by number. Returns how many there are. */
static int sort_workers(enum sort sort, const struct top_job *j, int *order)
{
	int n = 0, at;

	for (int w = 0; w < SAINA_WORKERS_MAX; w++) {
		if (!j->worker[w].there)
			continue;
		for (at = n++; at && sort_key(sort, &j->worker[order[at - 1]]) < sort_key(sort, &j->worker[w]); at--)
			order[at] = order[at - 1];
		order[at] = w;
	}
	return n;
}

static void draw_job(struct screen *s, const struct top_job *j)
{
	const struct saina_job_attrs *a = &j->attrs;
	int order[SAINA_WORKERS_MAX], n;
	char goodput[32], text[BOTTLENECK_TEXT_LEN], one[4 * SPARK_COLUMNS], two[4 * SPARK_COLUMNS], flips[32] = "-";

	if (a->sfcd_observed)
		snprintf(flips, sizeof(flips), "%.1f%%", 100 * j->flips);
	draw_line(s, A_BOLD, "%s %s  round %u  %.1f rounds/s  %sbit/s  k %u of %d  flips %s  %s", a->name,
		  SAINA_ENUM_NAME(saina_job_state_names, a->state), a->round, j->rounds, format_rate(j->goodput, goodput), a->k,
		  __builtin_popcountll(a->active), flips, policy_name(&a->policy));
	draw_line(s, A_NORMAL, "    rounds/s %s  k %s", format_sparkline(s, &j->rounds_history, 0, one),
		  format_sparkline(s, &j->k_history, a->workers, two));
	if (a->sfcd_observed)
		draw_line(s, A_NORMAL, "    flips    %s", format_sparkline(s, &j->flips_history, 0, one));
	if (bottleneck_text(&j->bottleneck, a, text, sizeof(text)))
		draw_line(s, A_STANDOUT, "    %s", text);
	if (SAINA_HAS(a, SAINA_A_JOB_TEXT))
		draw_line(s, A_STANDOUT, "    %s", a->text);
	draw_line(s, A_UNDERLINE, "   ID NAME             STATE MISSED    LAST  LATE ms       WAIT GRADIENT/s RESENT/s DROP/s  MISSED");
	n = sort_workers(s->sort, j, order);
	for (int i = 0; i < n; i++)
		draw_worker(s, &j->worker[order[i]]);
	draw_line(s, A_NORMAL, "%s", "");
}

static void draw_help(struct screen *s)
{
	static const char *const lines[] = {
		"q           quit", "p           pause", "s           sort workers by the next column: number, LATE ms, MISSED, GRADIENT/s",
		"arrows      scroll, also by pages", "?           this, and back", "",
		"MISSED      share of the sums that were made without the worker", "LAST        share of the sums that the worker's gradient completed",
		"LATE ms     after the first worker of the round: mean since the last sample",
		"WAIT        how long the oldest sum has waited for the worker",
	};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		draw_line(s, A_NORMAL, "%s", lines[i]);
}

/* Is this the job of the command line?  Without a job there, all are. */
static bool is_shown(const struct saina_job_attrs *a, const struct saina_job_attrs *only)
{
	if (SAINA_HAS(only, SAINA_A_JOB_ID))
		return a->id == only->id;
	return !SAINA_HAS(only, SAINA_A_JOB_NAME) || !strcmp(a->name, only->name);
}

static void draw(struct screen *s, const struct top *top, const struct saina_job_attrs *only)
{
	time_t now = time(NULL);
	char clock[32];
	int jobs = 0;

	strftime(clock, sizeof(clock), "%T", localtime(&now));
	erase();
	s->line = 0;
	if (s->help)
		draw_help(s);
	for (int i = 0; i < SAINA_JOBS_MAX && !s->help; i++) {
		if (!top->job[i].there || !is_shown(&top->job[i].attrs, only))
			continue;
		jobs++;
		draw_job(s, &top->job[i]);
	}
	if (s->from > s->line - 1)
		s->from = s->line ? s->line - 1 : 0;
	attrset(A_REVERSE);
	mvprintw(0, 0, "saina top  %s  %d job%s%s  by %s  q quit, p pause, s sort, ? help", clock, jobs,
		 jobs == 1 ? "" : "s", s->paused ? "  PAUSED" : "", sort_names[s->sort]);
	attrset(A_NORMAL);
	if (top->error[0])
		mvprintw(1, 0, "%s", top->error);
	else if (!jobs && !s->help && SAINA_HAS(only, SAINA_A_JOB_ID))
		mvprintw(1, 0, "no job has the number %u", only->id);
	else if (!jobs && !s->help && SAINA_HAS(only, SAINA_A_JOB_NAME))
		mvprintw(1, 0, "no job has the name \"%s\"", only->name);
	else if (!jobs && !s->help)
		mvaddstr(1, 0, "no jobs (make one: saina job add NAME elements N workers N)");
	refresh();
}

/* Handles typed keys; false: quit. */
static bool read_keys(struct screen *s)
{
	int c;

	while ((c = getch()) != ERR) {
		switch (c) {
		case 'q':
		case 'Q':
			return false;
		case 'p':
			s->paused = !s->paused;
			break;
		case 's':
			s->sort = (s->sort + 1) % SORTS;
			break;
		case '?':
			s->help = !s->help;
			break;
		case KEY_DOWN:
			s->from++;
			break;
		case KEY_UP:
			s->from -= s->from > 0;
			break;
		case KEY_NPAGE:
			s->from += LINES - 3;
			break;
		case KEY_PPAGE:
			s->from = s->from > LINES - 3 ? s->from - (LINES - 3) : 0;
			break;
		}
	}
	return !stop_requested();
}

static void wait_input(unsigned int ms)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };

	poll(&in, 1, ms);
}

static void run_screen(const struct tool *t, struct top *top, const struct saina_job_attrs *only,
		       unsigned int interval)
{
	struct screen s = { .utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8") };
	struct saina_ctl *agent = NULL;
	unsigned int last = monotonic_ms() - interval, now;
	const char *error;

	while (read_keys(&s)) {
		now = monotonic_ms();
		if (now - last >= interval && !s.paused) {
			last = now;
			if (!agent)
				agent = connect_agent_quiet(t, &error);
			if (!agent)
				snprintf(top->error, sizeof(top->error), "%s", error);
			/* the agent is gone: try to connect again at the next sample */
			if (agent && !top_sample(top, agent)) {
				saina_ctl_close(agent);
				agent = NULL;
			}
		}
		draw(&s, top, only);
		now = monotonic_ms() - last;
		wait_input(s.paused || now >= interval ? interval : interval - now);
	}
	saina_ctl_close(agent);
}

int tool_top(const struct tool *t, struct args *a)
{
	uint64_t interval = 1000;
	struct saina_job_attrs only = { 0 };
	struct saina_ctl *agent;
	const char *word;
	struct top *top;
	int ret;

	while ((word = args_next(a))) {
		if (!strcmp(word, "help")) {
			printf("Usage:\n  saina top [JOB] [interval MS]\n");
			return fflush(stdout) ? EXIT_FAILURE : 0;
		}
		if (!strcmp(word, "interval")) {
			word = args_next(a);
			if (!word || !args_number(word, 100, 60000, &interval))
				return args_error(a, "interval must be 100 to 60000 milliseconds");
		} else if (only.has) {
			return args_error(a, "unexpected argument \"%s\"", word);
		} else {
			ret = parse_job(a, word, &only.has, SAINA_A_JOB_ID, SAINA_A_JOB_NAME,
					&only.id, only.name);
			if (ret)
				return ret;
		}
	}
	if (t->mode != OUT_TEXT || !isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
		fprintf(stderr, "saina: top needs a terminal and has no JSON; for pipes and JSON use saina monitor\n");
		return EXIT_FAILURE;
	}
	agent = connect_agent(t);
	if (!agent)
		return EXIT_FAILURE;
	saina_ctl_close(agent);
	top = calloc(1, sizeof(*top));
	if (!top) {
		fprintf(stderr, "saina: out of memory\n");
		return EXIT_FAILURE;
	}
	setlocale(LC_ALL, "");
	stop_on_signals(true);
	if (!newterm(NULL, stdout, stdin)) {
		fprintf(stderr, "saina: top: unknown terminal type \"%s\"; try TERM=vt100\n",
			getenv("TERM") ?: "");
		free(top);
		return EXIT_FAILURE;
	}
	cbreak();
	noecho();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	curs_set(0);
	run_screen(t, top, &only, interval);
	endwin();
	top_free(top);
	free(top);
	return 0;
}
