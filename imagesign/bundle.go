package imagesign

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// Types of a Sigstore bundle and of what it holds.
const (
	// BundleTypes begin the type of each bundle; BundleType is the one that is read.
	BundleTypes = "application/vnd.dev.sigstore.bundle"
	BundleType  = "application/vnd.dev.sigstore.bundle.v0.3+json"

	statementType = "https://in-toto.io/Statement/v1"
	inToto        = "application/vnd.in-toto+json"
	// signType says of a statement that its signer signed the image. Any other is an
	// attestation: what somebody says of an image, which may be that it is bad.
	signType = "https://sigstore.dev/cosign/sign/v1"
)

// mostSubjects is how many images one statement may be about.
const mostSubjects = 1024

// ErrNotASignature is of what is no signature of an image by a key, such as an attestation.
var ErrNotASignature = errors.New("no signature of an image by a key")

// JudgeBundle gives the prints of the keys that signed the image of a digest by a bundle. It
// is ErrNotASignature where the bundle is whole and about something else. The entries of a
// log that it may have are not looked at: nobody is asked whether they are true.
func JudgeBundle(body []byte, digest string, keys []Key) ([]string, error) {
	if len(body) > MostBytes {
		return nil, fmt.Errorf("a bundle of more than %d bytes", MostBytes)
	}
	o, err := strictly(body, "mediaType", "verificationMaterial", "dsseEnvelope", "messageSignature")
	if err != nil {
		return nil, fmt.Errorf("a bundle with %w", err)
	}
	if t := o.text("mediaType"); t != BundleType {
		return nil, fmt.Errorf("a bundle of type %q", t)
	}
	if o["dsseEnvelope"] == nil || o["messageSignature"] != nil {
		return nil, ErrNotASignature
	}
	if err := byKey(o["verificationMaterial"]); err != nil {
		return nil, err
	}
	payload, message, sig, err := readEnvelope(o["dsseEnvelope"])
	if err != nil {
		return nil, err
	}
	signers := whoSigned(keys, message, sig)
	if err := aboutImage(payload, digest); err != nil {
		return nil, err
	}
	return signers, nil
}

// byKey reports whether a bundle was made by a key. A certificate beside an unlisted key
// says who had that key, by the word of an authority that this host does not ask.
func byKey(body []byte) error {
	o, err := strictly(body, "publicKey", "certificate", "x509CertificateChain", "tlogEntries", "timestampVerificationData")
	if err != nil {
		return fmt.Errorf("a bundle whose material has %w", err)
	}
	if o["certificate"] != nil || o["x509CertificateChain"] != nil {
		return ErrNotASignature
	}
	if _, err := strictly(o["publicKey"], "hint"); err != nil {
		return fmt.Errorf("a bundle whose key has %w", err)
	}
	if at := o["timestampVerificationData"]; at != nil {
		if _, err := strictly(at, "rfc3161Timestamps"); err != nil {
			return fmt.Errorf("a bundle whose times have %w", err)
		}
	}
	return nil
}

// readEnvelope takes a DSSE envelope apart: what it holds, what was signed, and the one
// signature that it has.
func readEnvelope(body []byte) (payload, message, sig []byte, err error) {
	o, err := strictly(body, "payload", "payloadType", "signatures")
	if err != nil {
		return nil, nil, nil, fmt.Errorf("an envelope with %w", err)
	}
	if t := o.text("payloadType"); t != inToto {
		return nil, nil, nil, fmt.Errorf("an envelope of type %q", t)
	}
	if payload, err = o.bytes("payload"); err != nil {
		return nil, nil, nil, errors.New("an envelope whose payload is no base64")
	}
	all := o.list("signatures")
	if len(all) != 1 {
		return nil, nil, nil, fmt.Errorf("an envelope with %d signatures instead of one", len(all))
	}
	s, err := strictly(all[0], "sig", "keyid")
	if err != nil {
		return nil, nil, nil, fmt.Errorf("a signature with %w", err)
	}
	if id := s["keyid"]; id != nil && string(id) != `""` { // cosign, which knows no names of keys, finds no such key
		return nil, nil, nil, errors.New("a signature by a key with a name")
	}
	if sig, err = s.bytes("sig"); err != nil {
		return nil, nil, nil, errors.New("a signature that is no base64")
	}
	var b bytes.Buffer // the encoding before authentication of DSSE: no text can be read as another
	fmt.Fprintf(&b, "DSSEv1 %d %s %d ", len(inToto), inToto, len(payload))
	b.Write(payload)
	return payload, b.Bytes(), sig, nil
}

// aboutImage reports whether a statement says that the image of the digest is signed.
func aboutImage(payload []byte, digest string) error {
	o, err := readObject(payload)
	if err != nil {
		return fmt.Errorf("a statement with %w", err)
	}
	if o.text("_type") != statementType || o.text("predicateType") != signType {
		return ErrNotASignature
	}
	subjects := o.list("subject")
	if len(subjects) > mostSubjects {
		return fmt.Errorf("a statement about %d images", len(subjects))
	}
	hex, ok := strings.CutPrefix(digest, "sha256:")
	for _, body := range subjects {
		s, err := readObject(body)
		if err != nil {
			return fmt.Errorf("a statement whose subject has %w", err)
		}
		d, err := readObject(s["digest"])
		if err == nil && ok && hex != "" && d.text("sha256") == hex {
			return nil
		}
	}
	return errOtherDigest
}

var errOtherDigest = errors.New("a signature of another digest")
