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

// session is what a cookie holds.
type session struct {
	ID    string    `json:"id"`
	Sum   []byte    `json:"sum"` // of the token, so that another one of that id is another one
	Until time.Time `json:"until"`
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

// begin is the cookie of a token that was shown.
func (s *sessions) begin(t Token) (*http.Cookie, error) {
	plain, err := json.Marshal(session{ID: t.ID, Sum: t.sum[:], Until: s.now().Add(SessionLife).UTC()})
	if err != nil {
		return nil, err
	}
	sealed := s.aead.Seal(nil, nil, plain, []byte(s.name))
	return s.cookie(base64.RawURLEncoding.EncodeToString(sealed), int(SessionLife.Seconds())), nil
}

// end is the cookie that takes it away.
func (s *sessions) end() *http.Cookie { return s.cookie("", -1) }

func (s *sessions) cookie(value string, age int) *http.Cookie {
	return &http.Cookie{
		Name: s.name, Value: value, Path: "/", MaxAge: age, HttpOnly: true, Secure: s.secure, SameSite: http.SameSiteLaxMode,
	}
}

// of is the token that a request's cookie stands for; false where it has none that counts.
func (s *sessions) of(r *http.Request) (Token, bool) {
	c, err := r.Cookie(s.name)
	if err != nil {
		return Token{}, false
	}
	sealed, err := base64.RawURLEncoding.DecodeString(c.Value)
	if err != nil {
		return Token{}, false
	}
	plain, err := s.aead.Open(nil, nil, sealed, []byte(s.name))
	if err != nil {
		return Token{}, false
	}
	var of session
	t := Token{}
	if json.Unmarshal(plain, &of) != nil || len(of.Sum) != len(t.sum) || !s.now().Before(of.Until) {
		return Token{}, false
	}
	t.ID = of.ID
	copy(t.sum[:], of.Sum)
	return t, true
}
