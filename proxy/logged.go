package proxy

import (
	"context"
	"errors"
	"io"
	"os"
	"syscall"
)

// toldErrors are those whose words are of the program or of the engine. Any other may quote
// what was carried: net/http does so with a head that it cannot read.
var toldErrors = []error{
	errNobody, errFull, errTried, errCut, errStalled, errFraming, io.EOF, io.ErrUnexpectedEOF, os.ErrDeadlineExceeded,
	context.Canceled, context.DeadlineExceeded, syscall.ECONNRESET, syscall.EPIPE, syscall.ECONNREFUSED, syscall.EHOSTUNREACH, syscall.ETIMEDOUT,
}

// logged is an error as a front may log it: nothing of a request or an answer is in it.
func logged(err error) string {
	var dial dialError
	if errors.As(err, &dial) {
		return dial.Error()
	}
	for _, known := range toldErrors {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return "the answer cannot be read"
}
