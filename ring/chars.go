package ring

import "strings"

// The characters of plain names. Patterns of long names are not compiled: each process of a
// front would keep a quarter of a megabyte for them.
const (
	Digits    = "0123456789"
	HexDigits = Digits + "abcdef"
	NameChars = Digits + "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz._-"
)

// IsMadeOf reports whether s is not empty, has at most so many bytes, and no other characters.
func IsMadeOf(s, chars string, most int) bool {
	return s != "" && len(s) <= most && strings.Trim(s, chars) == ""
}
