//go:build linux

package gitsync

import (
	"fmt"
	"math"
	"os"

	kernel "golang.org/x/sys/unix"
)

// callRule allows one system call: always, or where one of its cases holds.
type callRule struct {
	number uint32
	cases  []callCase
}

// callCase holds where all of its conditions do.
type callCase []condition

// condition compares one argument; of its two halves the lower, which is all that
// the kernel takes of an int.
type condition struct {
	argument uint32 // counted from 0
	mask     uint32 // the bits that are compared
	want     uint32
	upper    bool // the upper half instead
}

// bits compares those of mask.
func bits(argument, mask, want uint32) condition {
	return condition{argument: argument, mask: mask, want: want}
}

// is compares an argument of type int.
func is(argument, want uint32) condition { return bits(argument, math.MaxUint32, want) }

// without asks that no bit of mask is set.
func without(argument, mask uint32) condition { return bits(argument, mask, 0) }

// null asks for a pointer that points nowhere.
func null(argument uint32) callCase {
	return callCase{is(argument, 0), {argument: argument, mask: math.MaxUint32, upper: true}}
}

// oneOf is a case for each value that an argument may have.
func oneOf(argument uint32, values ...uint32) []callCase {
	var list []callCase
	for _, v := range values {
		list = append(list, callCase{is(argument, v)})
	}
	return list
}

// always allows calls whatever their arguments are.
func always(numbers ...uint32) []callRule {
	var list []callRule
	for _, nr := range numbers {
		list = append(list, callRule{number: nr})
	}
	return list
}

// Offsets in what the kernel hands to the filter (struct seccomp_data), on a
// little-endian processor.
const (
	offNumber = 0
	offArch   = 4
	offFirst  = 16 // the first argument, its lower half; the next are 8 bytes apart
)

// firstX32 is where the numbers of the x32 calls begin: the same calls by other
// numbers.
const firstX32 = 0x40000000

const (
	loadWord  = kernel.BPF_LD | kernel.BPF_W | kernel.BPF_ABS
	andWith   = kernel.BPF_ALU | kernel.BPF_AND | kernel.BPF_K
	jumpEqual = kernel.BPF_JMP | kernel.BPF_JEQ | kernel.BPF_K
	jumpMin   = kernel.BPF_JMP | kernel.BPF_JGE | kernel.BPF_K
	answers   = kernel.BPF_RET | kernel.BPF_K
)

var (
	allowCall = kernel.SockFilter{Code: answers, K: kernel.SECCOMP_RET_ALLOW}
	denyCall  = kernel.SockFilter{Code: answers, K: kernel.SECCOMP_RET_ERRNO | uint32(kernel.EPERM)}
	noSuch    = kernel.SockFilter{Code: answers, K: kernel.SECCOMP_RET_ERRNO | uint32(kernel.ENOSYS)}
	endHere   = kernel.SockFilter{Code: answers, K: kernel.SECCOMP_RET_KILL_PROCESS}
)

// program is the filter of system calls for the kernel: what a rule allows passes,
// a call in hostile ends the process, unknown is answered as on an older kernel,
// and everything else fails with EPERM.
func program(arch uint32, rules []callRule, hostile, unknown []uint32) ([]kernel.SockFilter, error) {
	p := []kernel.SockFilter{
		{Code: loadWord, K: offArch},
		{Code: jumpEqual, Jt: 1, K: arch},
		endHere,
		{Code: loadWord, K: offNumber},
		{Code: jumpMin, Jf: 1, K: firstX32},
		endHere,
	}
	for _, r := range rules {
		block := r.block()
		if len(block) > math.MaxUint8 {
			return nil, fmt.Errorf("the rule for system call %d is too long", r.number)
		}
		p = append(p, kernel.SockFilter{Code: jumpEqual, Jf: uint8(len(block)), K: r.number})
		p = append(p, block...)
	}
	for _, nr := range hostile {
		p = append(p, kernel.SockFilter{Code: jumpEqual, Jf: 1, K: nr}, endHere)
	}
	for _, nr := range unknown {
		p = append(p, kernel.SockFilter{Code: jumpEqual, Jf: 1, K: nr}, noSuch)
	}
	return append(p, denyCall), nil
}

// block is what is done for a call of the rule. It always ends with an answer.
func (r callRule) block() []kernel.SockFilter {
	if len(r.cases) == 0 {
		return []kernel.SockFilter{allowCall}
	}
	var p []kernel.SockFilter
	for _, c := range r.cases {
		const perCondition = 3
		for i, cond := range c {
			// To the end of this case: the conditions that follow, and its answer.
			rest := uint8((len(c)-1-i)*perCondition + 1)
			half := uint32(offFirst)
			if cond.upper {
				half = offFirst + 4
			}
			p = append(p,
				kernel.SockFilter{Code: loadWord, K: half + 8*cond.argument},
				kernel.SockFilter{Code: andWith, K: cond.mask},
				kernel.SockFilter{Code: jumpEqual, Jf: rest, K: cond.want})
		}
		p = append(p, allowCall)
	}
	return append(p, denyCall)
}

// allowedCalls are all that fetching needs of the kernel.
func allowedCalls(b *beginning) []callRule {
	list := append(runtimeCalls(uint32(os.Getpid())), fileCalls()...)
	if b.Scheme != "file" {
		list = append(list, networkCalls()...)
	}
	return list
}
