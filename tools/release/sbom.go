package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// billOfMaterials lists what is linked into the program, as the program itself says it
// ("go version -m"), in CycloneDX 1.6.
func billOfMaterials(path string, program []byte, f facts) ([]byte, error) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read what is linked: %w", err)
	}
	sum := sha256.Sum256(program)
	self := cdx.Component{
		BOMRef: "gitring", Type: cdx.ComponentTypeApplication, Name: "gitring", Version: f.version,
		PackageURL: "pkg:golang/" + info.Main.Path + "@" + f.version,
		Licenses:   &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}},
		Hashes:     &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}},
	}
	version := strings.TrimPrefix(info.GoVersion, "go")
	parts := []cdx.Component{{
		BOMRef: "pkg:golang/std@" + version, Type: cdx.ComponentTypeLibrary, Name: "std", Version: version,
		PackageURL: "pkg:golang/std@" + version,
	}}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		url := "pkg:golang/" + m.Path + "@" + m.Version
		parts = append(parts, cdx.Component{
			BOMRef: url, Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: url,
			Properties: &[]cdx.Property{{Name: "gitring:go.sum", Value: m.Sum}},
		})
	}
	links := make([]string, len(parts))
	for i, p := range parts {
		links[i] = p.BOMRef
	}
	bom := cdx.NewBOM()
	bom.SerialNumber = "urn:uuid:" + uuidOf(sum)
	bom.Metadata = &cdx.Metadata{Timestamp: f.date.Format(time.RFC3339), Component: &self}
	bom.Components = &parts
	bom.Dependencies = &[]cdx.Dependency{{Ref: "gitring", Dependencies: &links}}
	var b bytes.Buffer
	if err := cdx.NewBOMEncoder(&b, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_6); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// uuidOf is a UUID of version 8 (RFC 9562), whose bits are the program's hash.
func uuidOf(sum [32]byte) string {
	u := sum[:16]
	u[6] = u[6]&0x0f | 0x80
	u[8] = u[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}
