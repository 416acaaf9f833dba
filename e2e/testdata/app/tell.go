package main

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
)

// tell repeats words on both outputs in the forms in which programs do, and ends. A word
// $NAME is what the variable has, @FILE what the file does.
func tell(code string, words []string) {
	for _, w := range words {
		if name, ok := strings.CutPrefix(w, "$"); ok {
			w = os.Getenv(name)
		}
		if file, ok := strings.CutPrefix(w, "@"); ok {
			b, _ := os.ReadFile(file)
			w = string(b)
		}
		quoted, _ := json.Marshal(w)
		for _, out := range []*os.File{os.Stdout, os.Stderr} {
			fmt.Fprintln(out, "it is", w)
			fmt.Fprintf(out, "it is %q, %s, %x, %X\n", w, quoted, w, w)
			fmt.Fprintln(out, "it is", url.QueryEscape(w), url.PathEscape(w), hex.EncodeToString([]byte(w)))
			fmt.Fprintln(out, "Authorization: Basic", base64.StdEncoding.EncodeToString([]byte("alice:"+w)))
			fmt.Fprintln(out, "it is", base64.StdEncoding.EncodeToString([]byte(w)), base64.RawURLEncoding.EncodeToString([]byte("x"+w)))
		}
	}
	n, _ := strconv.Atoi(code)
	os.Exit(n)
}
