// Package secrets reads and writes encrypted files: those of SOPS in its five forms, and
// files of age. It never accepts what sops decrypt would not, and never reads a value of
// which it is not sure: docs/design/secrets.md has the rules.
//
// Read tells what a file is, which names it holds and whom it is for; it needs no key. Open
// decrypts it with the keys of a host, all of it or nothing. Errors about a file are
// *ring.Refusal, and no error holds a value.
//
// What a file is
//
//	form        which form a text has, if it is encrypted at all
//	file        reading without a key, and opening with one
//	metadata    what SOPS writes beside the values, read strictly
//	serves      which apps a file says it serves
//	selection   which values of a file are encrypted
//	refusal     how refusals of this package are made
//
// The forms
//
//	tree        values in the order of their file, and limits
//	yaml        one document of plain yaml
//	json        one object
//	env         lines of names and values
//	ini         sections of names and values
//
// Keys
//
//	cipher      one value: encrypted and decrypted
//	keys        identities of a host, and which of them opens a file
//	age         recipients and files of age
//	openpgp     recipients of OpenPGP
//	keyfile     files of keys, as only their owner may read them
//
// Writing
//
//	rules       what .sops.yaml says of a file
//	encrypt     a plain file as one of SOPS
//	comments    whether a plain file has what would be lost
package secrets
