# SPDX-License-Identifier: GPL-2.0-or-later
#
# A point with its spread for each label.  gnuplot -e "data = '...'; out = '...'; kind = 'svg'; panels = N;
# titles = 'A|B|..'" points.gp
# data: a file with a block for each panel; its columns: place, label, median, least, most.

columns = panels < 3 ? panels : 3
rows = (panels + columns - 1) / columns
height = rows > 1 ? 300 * rows : 560
if (kind eq 'svg') set terminal svg size 560 * columns, height font 'sans,11' background rgb 'white'; \
else set terminal pngcairo size 560 * columns, height font 'sans,10'
set output out
set multiplot layout rows, columns
set xrange [0:*]
set offsets 0, 0, 0.6, 0.6
set grid x lc rgb '#dddddd'
set lmargin 30
unset key
title_of(i) = system(sprintf("echo '%s' | cut -d'|' -f%d", titles, i + 1))
do for [i = 0:panels - 1] {
	set title title_of(i)
	plot data index i using 4:1:(column(5) - column(4)):(0) with vectors nohead lw 2 lc rgb '#7fb3d5', \
	     '' index i using 3:1:ytic(2) with points pt 7 ps 0.8 lc rgb '#c0392b'
}
unset multiplot
