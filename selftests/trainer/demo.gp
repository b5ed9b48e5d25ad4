# SPDX-License-Identifier: GPL-2.0-or-later
#
# The picture of `make demo'.  gnuplot -e "dir = '...'; target = 95; ..." demo.gp
#
# dir		folder of NAME.accuracy.dat and sfcd.sfcd.dat, and of demo.png, which is written
# svg		if defined: demo.svg is written instead, with the accuracy alone
# target	accuracy to reach, per cent
# runs		names of the runs, separated by blanks
# policies	the policy of each run, in the same order
# times		seconds of each run to the target, in the same order; 0: not reached
# sth		SFCD's threshold, 0 to 1
# workers	number of workers
# note		the headline

if (exists('svg')) {
	set terminal svg size 860,420 font 'sans,12' background 'white'
	set output dir . '/demo.svg'
} else {
	set terminal pngcairo size 1100,900 font 'sans,11'
	set output dir . '/demo.png'
}
set multiplot layout exists('svg') ? 1 : 2,1 title 'SAINA: ' . note font 'sans,12'
set grid lc rgb '#dddddd'
set key bottom right
set lmargin 9
set rmargin 9
n = words(runs)
end = 0
do for [i = 1:n] { stats dir . '/' . word(runs, i) . '.accuracy.dat' using 1 nooutput; if (STATS_max > end) { end = STATS_max } }
with_sfcd = !exists('svg') && strstrt(' ' . runs . ' ', ' sfcd ') > 0
colour(i) = word('#c0392b #2471a3 #229954 #8e44ad #d68910', i)
set xrange [0:end * 1.02]

set title 'accuracy on the test examples'
if (exists('svg')) { set xlabel 'seconds' }
set ylabel '%'
set yrange [target - 20:100]
set arrow from graph 0, first target to graph 1, first target nohead dt 2 lc rgb '#888888'
set label sprintf('target %g %%', target) at graph 0.01, first target offset 0, 0.6 tc rgb '#666666'
reached(t) = t > 0 ? sprintf(': %g %% after %.1f s', target, t) : sprintf(': %g %% not reached', target)
mark(t) = t > 0 ? t : NaN
# a line from where each curve reaches the target down to the axis: the time to the target
do for [i = 1:n] {
	t = real(word(times, i))
	if (t > 0) { set arrow from t, first target to t, graph 0 lc rgb colour(i) }
}
plot for [i = 1:n] dir . '/' . word(runs, i) . '.accuracy.dat' with lines lw 2 lc rgb colour(i) \
	title word(policies, i) . reached(real(word(times, i))), \
     for [i = 1:n] '+' every ::0::0 using (mark(real(word(times, i)))):(target) with points pt 7 lc rgb colour(i) notitle

unset arrow
unset label
if (!with_sfcd) { unset multiplot; exit }
set title 'sfcd: k and the share of sampled signs that flipped'
set xlabel 'seconds'
set ylabel 'k'
set yrange [0:workers + 0.5]
set ytics nomirror
set y2label 'share of flips'
set y2range [0:0.6]
set y2tics
set key bottom right
plot dir . '/sfcd.sfcd.dat' using 1:3 axes x1y2 with points pt 7 ps 0.4 lc rgb '#f0b27a' title 'flips of a round', \
     '' using 1:4 axes x1y2 with lines lw 2 lc rgb '#ca6f1e' title 'mean of the last 15 rounds', \
     sth axes x1y2 with lines dt 2 lc rgb '#888888' title 's_{th}', \
     dir . '/sfcd.sfcd.dat' using 1:2 with steps lw 2 lc rgb '#229954' title 'k'
unset multiplot
