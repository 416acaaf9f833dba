package runtime

import (
	"strconv"
	"strings"

	"github.com/docker/docker/api/types/container"
)

// signals are some of those from 1 to 64.
type signals uint64

func (s signals) with(n int) signals {
	if n < 1 || n > 64 {
		return s
	}
	return s | 1<<(n-1)
}

func (s signals) has(n int) bool { return n >= 1 && n <= 64 && s&(1<<(n-1)) != 0 }

// hand is what people did who had the engine send these to a container whose stop
// signal is stop, by its name or number, "" for TERM: docker stop sends that, and KILL
// when the grace is over. Its stop event comes after the end, and the look that the end
// asked for may be over by then.
func (s signals) hand(stop string) string {
	switch {
	case s.has(numberOf(stop)), s.has(15):
		return "stopped"
	case s.has(9), s.has(2), s.has(3): // KILL, INT, QUIT
		return "killed"
	}
	return ""
}

// numbers are those of Linux on all machines that engines run on, but for MIPS.
var numbers = map[string]int{
	"HUP": 1, "INT": 2, "QUIT": 3, "ILL": 4, "TRAP": 5, "ABRT": 6, "BUS": 7, "FPE": 8, "KILL": 9, "USR1": 10, "SEGV": 11,
	"USR2": 12, "PIPE": 13, "ALRM": 14, "TERM": 15, "STKFLT": 16, "CHLD": 17, "CONT": 18, "STOP": 19, "TSTP": 20, "TTIN": 21,
	"TTOU": 22, "URG": 23, "XCPU": 24, "XFSZ": 25, "VTALRM": 26, "PROF": 27, "WINCH": 28, "IO": 29, "PWR": 30, "SYS": 31,
	"RTMIN": 34, "RTMAX": 64,
}

// numberOf is the number of a signal as a stop_signal names it: SIGTERM, TERM, 15,
// SIGRTMIN+3; 0 for none.
func numberOf(name string) int {
	if n, err := strconv.Atoi(name); err == nil {
		return n
	}
	name = strings.TrimPrefix(strings.ToUpper(name), "SIG")
	if i := strings.IndexAny(name, "+-"); i > 0 {
		if n, err := strconv.Atoi(name[i:]); err == nil && numbers[name[:i]] > 0 {
			return numbers[name[:i]] + n
		}
	}
	return numbers[name]
}

// stopSignal is that of a container, "" for the engine's own.
func stopSignal(c container.InspectResponse) string {
	if c.Config == nil {
		return ""
	}
	return c.Config.StopSignal
}
