package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/client"

	"github.com/gitring/gitring/ring"
)

// meaning is what one of the engine's sentences stands for. All of words must
// be in it, in lower case.
type meaning struct {
	words     []string
	cause     string
	permanent bool
	hint      string
}

// meanings are looked through in order; the first that fits counts. The
// sentences are of Docker 20.10 to 28, and of runc.
var meanings = []meaning{
	{words: []string{"port is already allocated"}, cause: ring.CauseCreate},
	{words: []string{"bind: address already in use"}, cause: ring.CauseCreate},
	{words: []string{"no space left on device"}, cause: ring.CauseFiles},
	{words: []string{"cannot allocate memory"}, cause: ring.CauseResources},

	{words: []string{"could not find an available", "address pool"}, cause: ring.CauseNetwork, permanent: true, hint: poolHint},
	{words: []string{"all predefined address pools have been fully subnetted"}, cause: ring.CauseNetwork, permanent: true, hint: poolHint},
	{words: []string{"pool overlaps with other one"}, cause: ring.CauseNetwork},                     // which may go, as that of a renamed app does
	{words: []string{"is already used on the host or by another config"}, cause: ring.CauseNetwork}, // Podman's
	{words: []string{"invalid pool request"}, cause: ring.CauseNetwork, permanent: true},
	{words: []string{"user specified ip address is supported only"}, cause: ring.CauseNetwork, permanent: true},
	{words: []string{"invalid address", "does not belong to any of this network"}, cause: ring.CauseNetwork, permanent: true},
	{words: []string{"no configured subnet", "contain ip address"}, cause: ring.CauseNetwork, permanent: true},
	{words: []string{"no available ipv4 addresses"}, cause: ring.CauseNetwork},
	{words: []string{"address already in use"}, cause: ring.CauseNetwork}, // a static one, of the network
	{words: []string{"network ", " not found"}, cause: ring.CauseNetwork},
	{words: []string{"has active endpoints"}, cause: ring.CauseNetwork},

	// The container that an instance joins does not run now.
	{words: []string{"non running container"}, cause: ring.CauseCreate},
	{words: []string{"non-shareable ipc"}, cause: ring.CauseCreate, permanent: true, hint: "write ipc: shareable in the service that is joined"},

	{words: []string{"no such image"}, cause: ring.CauseImagePull},
	{words: []string{"are you trying to mount a directory onto a file"}, cause: ring.CauseFiles, permanent: true},
	{words: []string{"error mounting"}, cause: ring.CauseFiles, permanent: true},
	{words: []string{"invalid mount"}, cause: ring.CauseFiles, permanent: true},
	{words: []string{"bind source path does not exist"}, cause: ring.CauseFiles, permanent: true},
	{words: []string{"duplicate mount point"}, cause: ring.CauseFiles, permanent: true},
	{words: []string{"invalid volume"}, cause: ring.CauseFiles, permanent: true},
	{words: []string{"volume", "already exists"}, cause: ring.CauseFiles, permanent: true},

	// Exit 126 and 127: the program is not there or may not be run.
	{words: []string{"executable file not found"}, cause: ring.CauseCreate, permanent: true},
	{words: []string{`exec: "`}, cause: ring.CauseCreate, permanent: true},
	{words: []string{"exec format error"}, cause: ring.CauseCreate, permanent: true},
	{words: []string{"chdir to cwd"}, cause: ring.CauseCreate, permanent: true},
	{words: []string{"unable to find user"}, cause: ring.CauseCreate, permanent: true},
	{words: []string{"unable to find group"}, cause: ring.CauseCreate, permanent: true},
	{words: []string{"no command specified"}, cause: ring.CauseCreate, permanent: true},

	{words: []string{"restart policy", "valid"}, cause: ring.CauseConfig, permanent: true}, // Podman's
	{words: []string{"no log driver named"}, cause: ring.CauseConfig, permanent: true},
	{words: []string{"unknown log opt"}, cause: ring.CauseConfig, permanent: true},
}

const poolHint = "widen default-address-pools in the engine's daemon.json, or give the network a subnet"

// fault is err with what it means, under a sentence that begins with "cannot".
// cause is what it counts as when the engine's sentence tells no more; "" none.
func fault(cannot, cause string, err error) *ring.EngineError {
	e := &ring.EngineError{Err: fmt.Errorf("%s: %w", cannot, err)}
	var known *ring.EngineError
	switch {
	case errors.As(err, &known):
		e.Cause, e.Permanent, e.Broken, e.Refusal = known.Cause, known.Permanent, known.Broken, known.Refusal
		return e
	case away(err):
		return e // nothing is known of the step, and nobody's fault
	}
	text := strings.ToLower(err.Error())
	for _, m := range meanings {
		if !m.fits(text) {
			continue
		}
		e.Cause, e.Permanent = m.cause, m.permanent
		if m.hint != "" {
			e.Err = fmt.Errorf("%w; %s", e.Err, m.hint)
		}
		return e
	}
	e.Cause = cause
	if cause != "" && cerrdefs.IsInvalidArgument(err) {
		e.Cause, e.Permanent = ring.CauseConfig, true
	}
	return e
}

func (m meaning) fits(text string) bool {
	for _, w := range m.words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}

// away reports whether the engine did not answer, as opposed to having said no.
func away(err error) bool {
	var nerr net.Error
	return client.IsErrConnectionFailed(err) || cerrdefs.IsUnavailable(err) || errors.As(err, &nerr) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// refused is a fault that the commit's author can act on.
func refused(a ring.Action, cause string, code ring.Code, says, hint string) *ring.EngineError {
	r := &ring.Refusal{Code: code, Commit: a.Commit, App: a.App, Says: says, Hint: hint}
	if a.Want != nil {
		r.File, r.Line = a.Want.File, a.Want.Line
	}
	return &ring.EngineError{Cause: cause, Permanent: true, Refusal: r, Err: r}
}
