// Package screen is text for people on a terminal: words in colours, lines that wrap,
// tables whose columns find room, and a part that is drawn again and again. It knows
// nothing of what it shows.
//
//	screen  a screen: words, lines and tables
//	wrap    lines that end at the edge of a terminal
//	live    a part of a terminal that is drawn again
//	text    names, ages and times as a terminal shows them
package screen
