package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/gitring/gitring/ring"
)

// Error is what the socket answers instead of a result; the client returns it
// as it was. Code names it, Message is one sentence, Hint says what to do next.
type Error struct {
	Code    string `json:"code"`
	Message string `json:"error"`
	Hint    string `json:"hint,omitempty"`
	// Status is the HTTP status; in a stream, where that was sent long ago, it
	// is derived from Code.
	Status int `json:"-"`
}

func (e *Error) Error() string { return e.Message }

// What kinds of Error there are, for errors.Is.
var (
	ErrUsage    = errors.New("wrong usage")
	ErrDenied   = errors.New("denied")
	ErrNotFound = errors.New("not found")
	ErrConflict = errors.New("conflict")
	ErrRefused  = errors.New("refused")
)

// Codes of an Error that are not the code of a refusal.
const (
	CodeUsage    = "Usage"
	CodeDenied   = "Denied"
	CodeNotFound = "NotFound"
	CodeConflict = "Conflict"
	CodeInternal = "Internal"
	CodeAway     = "Away" // a remote or the engine did not answer
)

// Is tells the kinds apart by status.
func (e *Error) Is(kind error) bool {
	switch e.Status {
	case http.StatusBadRequest:
		return kind == ErrUsage
	case http.StatusForbidden:
		return kind == ErrDenied
	case http.StatusNotFound:
		return kind == ErrNotFound
	case http.StatusConflict:
		return kind == ErrConflict
	case http.StatusUnprocessableEntity:
		return kind == ErrRefused
	}
	return false
}

// Usage is a request that can never work as it is.
func Usage(hint, format string, args ...any) *Error {
	return &Error{CodeUsage, fmt.Sprintf(format, args...), hint, http.StatusBadRequest}
}

// Denied is a request that this person may not make.
func Denied(hint, format string, args ...any) *Error {
	return &Error{CodeDenied, fmt.Sprintf(format, args...), hint, http.StatusForbidden}
}

// NotFound is a source, app, service or commit that is not known here.
func NotFound(hint, format string, args ...any) *Error {
	return &Error{CodeNotFound, fmt.Sprintf(format, args...), hint, http.StatusNotFound}
}

// Conflicting is a request that the present state does not allow, such as an
// approval of what waits for none.
func Conflicting(hint, format string, args ...any) *Error {
	return &Error{CodeConflict, fmt.Sprintf(format, args...), hint, http.StatusConflict}
}

// Away is a remote or an engine that did not answer.
func Away(hint, format string, args ...any) *Error {
	return &Error{CodeAway, fmt.Sprintf(format, args...), hint, http.StatusBadGateway}
}

// asError is the form in which an error leaves the daemon.
func asError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	var r *ring.Refusal
	if errors.As(err, &r) {
		return &Error{string(r.Code), r.Error(), r.Hint, http.StatusUnprocessableEntity}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return &Error{CodeAway, "the daemon is stopping", "ask again in a moment", http.StatusServiceUnavailable}
	}
	return &Error{CodeInternal, err.Error(), "", http.StatusInternalServerError}
}

// statusOf is the HTTP status of an error that came in a stream.
func statusOf(code string) int {
	switch code {
	case CodeUsage:
		return http.StatusBadRequest
	case CodeDenied:
		return http.StatusForbidden
	case CodeNotFound:
		return http.StatusNotFound
	case CodeConflict:
		return http.StatusConflict
	case CodeInternal:
		return http.StatusInternalServerError
	case CodeAway:
		return http.StatusBadGateway
	}
	return http.StatusUnprocessableEntity // the code of a refusal
}

func writeError(w http.ResponseWriter, err error) {
	e := asError(err)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.Status)
	_ = json.NewEncoder(w).Encode(e)
}

// ErrUnreachable is returned by every call of a client when no daemon answers
// on the socket, or when it goes away in the middle of an answer.
type ErrUnreachable struct {
	Socket string
	Err    error
}

func (e *ErrUnreachable) Error() string {
	return fmt.Sprintf("cannot reach the daemon on %s: %v", e.Socket, e.Err)
}

func (e *ErrUnreachable) Unwrap() error { return e.Err }
