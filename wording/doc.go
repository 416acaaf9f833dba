// Package wording puts small words into sentences for people.
package wording
