package api

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// selfSigned writes a certificate of a serial number, and its key.
func selfSigned(t *testing.T, cert, key string, serial int64) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	of := &x509.Certificate{SerialNumber: big.NewInt(serial), DNSNames: []string{"localhost"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, of, of, k.Public(), k)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(k)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
}

func TestACertificateIsReadAgainWhenItChanged(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "c.pem"), filepath.Join(dir, "k.pem")
	selfSigned(t, cert, key, 1)
	w := newWebDoor(t, func(o *WebOptions) { o.CertFile, o.KeyFile = cert, key })
	token := w.token("ann", "read")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx, l) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-ended) })
	serial := func() int64 {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // which one it is, is the question
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+l.Addr().String()+"/v1/status", nil)
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+token)
		res, err := client.Do(r)
		require.NoError(t, err)
		defer res.Body.Close() //nolint:errcheck // only read
		require.Equal(t, http.StatusOK, res.StatusCode)
		require.Equal(t, 1, res.ProtoMajor)
		return res.TLS.PeerCertificates[0].SerialNumber.Int64()
	}
	require.EqualValues(t, 1, serial())
	selfSigned(t, cert, filepath.Join(dir, "new.pem"), 20_000_000) // half of a renewal
	require.EqualValues(t, 1, serial())
	require.NoError(t, os.Rename(filepath.Join(dir, "new.pem"), key))
	require.EqualValues(t, 20_000_000, serial())
	require.NoError(t, os.Remove(cert))
	require.EqualValues(t, 20_000_000, serial(), "one that is gone leaves the one before")

	_, err = NewWeb(&newSocket(t, newDaemon()).Table, WebOptions{Tokens: w.Tokens, SessionKey: make([]byte, 32), Address: "127.0.0.1:1", CertFile: cert, KeyFile: key, Now: time.Now, Log: quiet})
	require.ErrorContains(t, err, "cannot use the certificate of listen.api")
}
