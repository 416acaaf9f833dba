package imagesign

import (
	"errors"
	"fmt"
)

// Names of cosign's older form: a layer holds what was signed, and an annotation of it the
// signature.
const (
	SimpleType      = "application/vnd.dev.cosign.simplesigning.v1+json"
	SimpleSignature = "dev.cosignproject.cosign/signature"

	simpleKind = "cosign container image signature"
)

// JudgeSimple gives the prints of the keys that signed the image of a digest by a text and
// its signature, in base64.
func JudgeSimple(body []byte, signature, digest string, keys []Key) ([]string, error) {
	if len(body) > MostBytes || len(signature) > MostBytes {
		return nil, fmt.Errorf("a signature of more than %d bytes", MostBytes)
	}
	sig, err := plainBase64(signature)
	if err != nil {
		return nil, errors.New("a signature that is no base64")
	}
	o, err := readObject(body)
	if err != nil {
		return nil, fmt.Errorf("a signed text with %w", err)
	}
	critical, err := readObject(o["critical"])
	if err != nil {
		return nil, fmt.Errorf("a signed text whose critical part has %w", err)
	}
	if critical.text("type") != simpleKind {
		return nil, ErrNotASignature
	}
	image, err := readObject(critical["image"])
	if err != nil {
		return nil, fmt.Errorf("a signed text whose image has %w", err)
	}
	if image.text("docker-manifest-digest") != digest || digest == "" {
		return nil, errOtherDigest
	}
	return whoSigned(keys, body, sig), nil
}
