package api

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// SessionLife is how long a browser stays signed in.
const SessionLife = 8 * time.Hour

const sessionKeyBytes = 32

// sessions are cookies that only this daemon can make and read. Nothing of them is
// stored: a session is worth what its token is worth at that moment.
type sessions struct {
	aead cipher.AEAD
	now  func() time.Time
	// name of the cookie. With secure it is bound to this very host.
	name   string
	secure bool
}

// session is what a cookie holds: whose token it stands for, or whom an issuer knew.
type session struct {
	ID  string `json:"id,omitempty"`
	Sum []byte `json:"sum,omitempty"` // of the token, so that another one of that id is another one

	Account string   `json:"account,omitempty"` // whom the issuer knew; "" for a token's
	Issuer  string   `json:"issuer,omitempty"`
	Rows    []string `json:"rows,omitempty"` // of the roles that were theirs then

	Until time.Time `json:"until"`
}

// token is the one that the session stands for; false where it is none's.
func (s *session) token() (Token, bool) {
	t := Token{ID: s.ID}
	copy(t.sum[:], s.Sum)
	return t, s.ID != "" && len(s.Sum) == len(t.sum)
}

// LoadSessionKey reads the key of sessions, and makes one where there is none. Whoever
// removes it ends all sessions with the next reload.
func LoadSessionKey(path string) ([]byte, error) {
	key, err := os.ReadFile(path)
	if err == nil && len(key) == sessionKeyBytes {
		return key, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot read the key of sessions: %w", err)
	}
	key = make([]byte, sessionKeyBytes)
	_, _ = rand.Read(key) // never fails
	f, err := os.CreateTemp(filepath.Dir(path), ".session-*")
	if err != nil {
		return nil, fmt.Errorf("cannot write the key of sessions: %w", err)
	}
	_, err = f.Write(key)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot write the key of sessions: %w", errors.Join(err, os.Remove(f.Name())))
	}
	return key, nil
}

func newSessions(key []byte, name string, secure bool, now func() time.Time) (*sessions, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("cannot use the key of sessions: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("cannot use the key of sessions: %w", err)
	}
	return &sessions{aead: aead, now: now, name: name, secure: secure}, nil
}

// longestCookie is what every browser keeps of one, with its name and attributes. It drops a longer one
// and tells nobody.
const longestCookie = 4096

var errLongCookie = errors.New("a cookie would be longer than a browser keeps")

// begin is the cookie of a session that begins now.
func (s *sessions) begin(of session) (*http.Cookie, error) {
	of.Until = s.now().Add(SessionLife).UTC()
	return s.sealed(s.name, of, SessionLife)
}

// sealed is a cookie that only open can read; errLongCookie where a browser would not keep it.
func (s *sessions) sealed(name string, of any, life time.Duration) (*http.Cookie, error) {
	value, err := s.seal(name, of)
	if err != nil {
		return nil, err
	}
	c := s.cookie(name, value, int(life.Seconds()))
	if len(c.String()) > longestCookie {
		return nil, errLongCookie
	}
	return c, nil
}

// seal is the value of a cookie that only open can read, under the same name.
func (s *sessions) seal(name string, of any) (string, error) {
	plain, err := json.Marshal(of)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, plain, []byte(name))), nil
}

// open reads a cookie of a request; false where it is not there, or is not ours.
func (s *sessions) open(r *http.Request, name string, into any) bool {
	c, err := r.Cookie(name)
	if err != nil {
		return false
	}
	sealed, err := base64.RawURLEncoding.DecodeString(c.Value)
	if err != nil {
		return false
	}
	plain, err := s.aead.Open(nil, nil, sealed, []byte(name))
	return err == nil && json.Unmarshal(plain, into) == nil
}

// signInName is the name of the cookie of a sign-in that is under way at an issuer.
func (s *sessions) signInName() string { return s.name + "-signin" }

// end is the cookie that takes it away.
func (s *sessions) end() *http.Cookie { return s.cookie(s.name, "", -1) }

func (s *sessions) cookie(name, value string, age int) *http.Cookie {
	return &http.Cookie{
		Name: name, Value: value, Path: "/", MaxAge: age, HttpOnly: true, Secure: s.secure, SameSite: http.SameSiteLaxMode,
	}
}

// of is the session of a request; false where it has none that counts.
func (s *sessions) of(r *http.Request) (session, bool) {
	var of session
	ok := s.open(r, s.name, &of) && s.now().Before(of.Until)
	return of, ok
}
