#!/usr/bin/env bash
# Builds SOPS as bin/sops, for the tests that hold gitring's reader of encrypted files to
# it. gitring does not link it. Most of what it links are libraries of clouds, and no test
# asks a cloud. So the packages that do are written anew here, as ones that reach none: the
# build takes a fifth of the work. CLOUDS=1 builds it as it is.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/say.sh

# keys_of writes a package of a cloud's keys: their fields, and on stdin what they are made by.
keys_of() {
	local package=$1 fields=$2
	rm "$work/sops/$package"/*.go
	cat - >"$work/sops/$package/keysource.go" <<EOF
package $package

import (
	"errors"
	"strings"
	"time"
)

var errCloud = errors.New("this sops reaches no cloud ($package)")

type MasterKey struct {
	$fields, EncryptedKey string
	CreationDate time.Time
	EncryptionContext map[string]*string
}

func (k *MasterKey) Encrypt([]byte) error           { return errCloud }
func (k *MasterKey) EncryptIfNeeded([]byte) error   { return errCloud }
func (k *MasterKey) EncryptedDataKey() []byte       { return []byte(k.EncryptedKey) }
func (k *MasterKey) SetEncryptedDataKey(enc []byte) { k.EncryptedKey = string(enc) }
func (k *MasterKey) Decrypt() ([]byte, error)       { return nil, errCloud }
func (k *MasterKey) NeedsRotation() bool            { return false }
func (k *MasterKey) ToString() string               { return strings.Join([]string{k.${fields//, /, k.}}, " ") }
func (k *MasterKey) ToMap() map[string]any          { return map[string]any{"enc": k.EncryptedKey} }
func (k *MasterKey) TypeToIdentifier() string       { return "$package" }

// none are the keys of a list of none.
func none(list string) ([]*MasterKey, error) {
	if strings.TrimSpace(list) != "" {
		return nil, errCloud
	}
	return nil, nil
}
EOF
	cat >>"$work/sops/$package/keysource.go"
}

# cloudless changes the copy of SOPS in $work/sops.
cloudless() {
	keys_of kms 'Arn, Role, AwsProfile' <<'EOF'
func NewMasterKeyWithProfile(arn, role string, c map[string]*string, profile string) *MasterKey {
	return &MasterKey{Arn: arn, Role: role, EncryptionContext: c, AwsProfile: profile}
}
func NewMasterKeyFromArn(arn string, c map[string]*string, profile string) *MasterKey {
	return NewMasterKeyWithProfile(arn, "", c, profile)
}
func MasterKeysFromArnString(list string, _ map[string]*string, _ string) []*MasterKey {
	keys, err := none(list)
	if err != nil {
		return []*MasterKey{{Arn: list}}
	}
	return keys
}
func ParseKMSContext(any) map[string]*string { return nil }
EOF
	keys_of gcpkms 'ResourceID' <<'EOF'
func NewMasterKeyFromResourceID(id string) *MasterKey { return &MasterKey{ResourceID: id} }
func MasterKeysFromResourceIDString(list string) []*MasterKey {
	keys, err := none(list)
	if err != nil {
		return []*MasterKey{{ResourceID: list}}
	}
	return keys
}
EOF
	keys_of azkv 'VaultURL, Name, Version' <<'EOF'
func NewMasterKeyWithOptionalVersion(url, name, version string) (*MasterKey, error) { return nil, errCloud }
func NewMasterKeyFromURL(string) (*MasterKey, error)                                { return nil, errCloud }
func MasterKeysFromURLs(list string) ([]*MasterKey, error)                          { return none(list) }
EOF
	keys_of hcvault 'VaultAddress, EnginePath, KeyName' <<'EOF'
func NewMasterKeyFromURI(string) (*MasterKey, error)          { return nil, errCloud }
func NewMasterKeysFromURIs(list string) ([]*MasterKey, error) { return none(list) }
EOF
	# Files name these keys by one word, which is looked at where they are read.
	keys_of hckms 'KeyID' <<'EOF'
func NewMasterKey(id string) (*MasterKey, error) {
	region, key, found := strings.Cut(id, ":")
	if !found || strings.TrimSpace(region) == "" || strings.TrimSpace(key) == "" {
		return nil, errors.New("not a region and a key: " + id)
	}
	return &MasterKey{KeyID: id}, nil
}
func NewMasterKeyFromKeyIDString(list string) ([]*MasterKey, error) { return none(list) }
EOF
	rm "$work"/sops/publish/{gcs,s3,vault}.go
	cat >"$work/sops/publish/cloudless.go" <<'EOF'
package publish

type cloud struct{}

func (cloud) Upload([]byte, string) error                    { return &NotImplementedError{"no cloud"} }
func (cloud) UploadUnencrypted(map[string]any, string) error { return &NotImplementedError{"no cloud"} }
func (cloud) Path(name string) string                        { return name }

type (
	S3Destination    struct{ cloud }
	GCSDestination   struct{ cloud }
	VaultDestination struct{ cloud }
)

func NewS3Destination(_, _ string) *S3Destination                   { return &S3Destination{} }
func NewGCSDestination(_, _ string) *GCSDestination                 { return &GCSDestination{} }
func NewVaultDestination(_, _, _ string, _ int) *VaultDestination { return &VaultDestination{} }
EOF
}

if [ -x bin/sops ]; then
	exit 0
fi
say "building SOPS for the tests that run it"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp tools/sops.mod tools/sops.sum "$work"
if [ -z "${CLOUDS:-}" ]; then
	go mod download -modfile=tools/sops.mod github.com/getsops/sops/v3
	cp -R "$(go list -m -modfile=tools/sops.mod -f '{{.Dir}}' github.com/getsops/sops/v3)" "$work/sops"
	chmod -R u+w "$work/sops"
	cloudless
	go mod edit -replace "github.com/getsops/sops/v3=$work/sops" "$work/sops.mod"
fi
go build -modfile="$work/sops.mod" -o bin/sops github.com/getsops/sops/v3/cmd/sops
