# SPDX-License-Identifier: GPL-2.0-or-later
#
# The picture of `make bench'.  gnuplot -e "data = '...'; out = '...'; panels = N;
# titles = 'A|B|..'" plot.gp
# data: a file with a block for each panel; its columns: bytes, goodput of libsaina, its
# quartiles, goodput of the best peer, and of the best peer through ports with SAINA's program.

columns = panels < 3 ? panels : 3
rows = (panels + columns - 1) / columns
set terminal pngcairo size 430 * columns, 330 * rows font 'sans,10'
set output out
set multiplot layout rows, columns
set logscale x 2
set xtics ('64 Ki' 65536, '1 Mi' 1048576, '4 Mi' 4194304, '16 Mi' 16777216, '64 Mi' 67108864)
set yrange [0:*]
set grid lc rgb '#dddddd'
set xlabel 'bytes of the tensor'
set ylabel 'Gb/s'
set key top left
title_of(i) = system(sprintf("echo '%s' | cut -d'|' -f%d", titles, i + 1))
do for [i = 0:panels - 1] {
	set title title_of(i)
	plot data index i using 1:2:3:4 with yerrorlines lw 2 pt 7 ps 0.6 lc rgb '#c0392b' title 'libsaina', \
	     '' index i using 1:5 with linespoints lw 2 pt 5 ps 0.6 lc rgb '#2471a3' title 'best peer', \
	     '' index i using 1:6 with points pt 4 lc rgb '#7fb3d5' title 'best peer beside SAINA'
}
unset multiplot
