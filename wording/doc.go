// Package wording puts small words into sentences for people.
//
//	words  counts, and words that are there or not
//	size   amounts of bytes
//	safe   texts from outside, as a terminal, a forge or a chat may have them
package wording
