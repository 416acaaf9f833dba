package screen

import (
	"fmt"
	"strings"
	"time"

	"github.com/gitring/gitring/wording"
)

// CleanLogLine keeps the colours of a line and nothing else that steers a terminal.
func CleanLogLine(line string) string {
	var b strings.Builder
	end := 0
	for _, at := range paints.FindAllStringIndex(line, -1) {
		b.WriteString(wording.SafeLine(line[end:at[0]]) + line[at[0]:at[1]])
		end = at[1]
	}
	b.WriteString(wording.SafeLine(line[end:]))
	if end > 0 {
		b.WriteString("\x1b[0m")
	}
	return b.String()
}

// Age is how long before now t was: "just now" below a second, else Elapsed and "ago".
func Age(t, now time.Time) string {
	if now.Sub(t) < time.Second {
		return "just now"
	}
	return Elapsed(t, now) + " ago"
}

// Lasting is " for 3s" of what has been so since t, and "" below a second.
func Lasting(t, now time.Time) string {
	if now.Sub(t) < time.Second {
		return ""
	}
	return " for " + Elapsed(t, now)
}

// Elapsed is the time from t to now, with one unit; "0s" where t is later.
func Elapsed(t, now time.Time) string {
	d := max(now.Sub(t), 0)
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// Stamp is a time as people read it: UTC, to the second; "" for none.
func Stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05")
}

// Times is how often something happened.
func Times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
