// Package imagesign judges signatures of images: bytes that a registry gave, the digest of
// an image, and the keys that a host trusts. It asks nobody: no registry, no log of
// signatures, no authority and no clock.
//
//	rule      what a host asks of the images of some repositories
//	key       public keys, and signatures by them
//	bundle    a Sigstore bundle: one signed statement about an image
//	simple    a signature of cosign's older form, beside its image under a tag
//	tally     who of the listed signed, and whether these are enough
//	object    JSON that is read strictly
package imagesign

// The bounds of what is read for one image.
const (
	MostReferrers = 64
	MostLayers    = 64
	MostBytes     = 1 << 20 // of one manifest, index or signature
)

// Form is how a signature was kept.
type Form string

// The forms, and the verdict of a program.
const (
	Bundle Form = "bundle"
	Simple Form = "simple signing"
	Exec   Form = "exec"
)
