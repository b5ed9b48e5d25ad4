# SPDX-License-Identifier: GPL-2.0-or-later
#
# A picture of `make figures'.  gnuplot -e "data = '...'; out = '...'; kind = 'svg'; panels = N;
# titles = 'A|B|..'" plot.gp
# data: a file with a block for each panel; its columns: place, label, published, simulated, simulated
# with the same draws, measured.

columns = panels < 2 ? panels : 2
rows = (panels + columns - 1) / columns
if (kind eq 'svg') set terminal svg size 560 * columns, 340 * rows font 'sans,11' background rgb 'white'; \
else set terminal pngcairo size 560 * columns, 340 * rows font 'sans,10'
set output out
set multiplot layout rows, columns
set yrange [0:*]
set offsets 0.4, 0.4, 0, 0
set grid y lc rgb '#dddddd'
set key bmargin center horizontal
title_of(i) = system(sprintf("echo '%s' | cut -d'|' -f%d", titles, i + 1))
do for [i = 0:panels - 1] {
	set title title_of(i)
	plot data index i using 1:4:xtic(2) with linespoints lw 2 pt 5 ps 0.6 lc rgb '#2471a3' title 'simulated', \
	     '' index i using 1:5 with points pt 4 ps 1.1 lc rgb '#7fb3d5' title 'simulated, same draws', \
	     '' index i using 1:3 with points pt 9 ps 1.1 lc rgb '#7d8a8f' title 'published', \
	     '' index i using 1:6 with linespoints lw 2 pt 7 ps 0.7 lc rgb '#c0392b' title 'measured'
}
unset multiplot
