package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

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
	// after is when to ask again; zero where nothing says so.
	after time.Duration
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
	// Of listen.api alone.
	CodeUnauthenticated = "Unauthenticated"
	CodeWrongHost       = "WrongHost"
	CodeTooMany         = "TooMany"
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
	return &Error{Code: CodeUsage, Message: fmt.Sprintf(format, args...), Hint: hint, Status: http.StatusBadRequest}
}

// Denied is a request that this person may not make.
func Denied(hint, format string, args ...any) *Error {
	return &Error{Code: CodeDenied, Message: fmt.Sprintf(format, args...), Hint: hint, Status: http.StatusForbidden}
}

// NotFound is a source, app, service or commit that is not known here.
func NotFound(hint, format string, args ...any) *Error {
	return &Error{Code: CodeNotFound, Message: fmt.Sprintf(format, args...), Hint: hint, Status: http.StatusNotFound}
}

// Conflicting is a request that the present state does not allow, such as an
// approval of what waits for none.
func Conflicting(hint, format string, args ...any) *Error {
	return &Error{Code: CodeConflict, Message: fmt.Sprintf(format, args...), Hint: hint, Status: http.StatusConflict}
}

// Away is a remote or an engine that did not answer.
func Away(hint, format string, args ...any) *Error {
	return &Error{Code: CodeAway, Message: fmt.Sprintf(format, args...), Hint: hint, Status: http.StatusBadGateway}
}

// asError is the form in which an error leaves the daemon.
func asError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	var r *ring.Refusal
	if errors.As(err, &r) {
		return &Error{Code: string(r.Code), Message: r.Error(), Hint: r.Hint, Status: http.StatusUnprocessableEntity}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return &Error{Code: CodeAway, Message: "the daemon is stopping", Hint: "ask again in a moment", Status: http.StatusServiceUnavailable}
	}
	return &Error{Code: CodeInternal, Message: err.Error(), Status: http.StatusInternalServerError}
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
	case CodeUnauthenticated:
		return http.StatusUnauthorized
	case CodeWrongHost:
		return http.StatusMisdirectedRequest
	case CodeTooMany:
		return http.StatusTooManyRequests
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
