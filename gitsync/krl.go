package gitsync

import (
	"encoding/binary"
	"errors"
	"fmt"
	mathbits "math/bits"
	"strconv"
	"strings"
)

// krlMagic begins a key revocation list as ssh-keygen -k writes it.
const krlMagic = "SSHKRL\n\x00"

// Sections of a key revocation list (OpenSSH's PROTOCOL.krl).
const (
	krlCertificates = 1
	krlKeys         = 2
	krlSHA1         = 3
	krlSHA256       = 5
	krlExtension    = 255

	krlSerials        = 0x20
	krlSerialRange    = 0x21
	krlSerialBitmap   = 0x22
	krlKeyIDs         = 0x23
	krlCertsExtension = 0x39
)

// krl reads one list.
type krl struct {
	path string
	all  *revocations
}

// krlPart is what is left of a run of bytes of the file.
type krlPart struct {
	b  []byte
	at int // of b[0], in the file
}

// parseKRL reads a whole list into all. Its error names the file and the offset.
// Nothing in it makes more memory than the file has bytes: ranges and bitmaps stay
// what they are.
func parseKRL(path string, b []byte, all *revocations) error {
	k := &krl{path: path, all: all}
	p := &krlPart{b: b}
	if _, err := p.take(len(krlMagic)); err != nil {
		return k.wrong(p.at, err)
	}
	version, err := p.uint32()
	if err == nil && version != 1 {
		err = fmt.Errorf("its format is version %d, and gitring reads 1", version)
	}
	for range 3 { // its own version, when it was made, flags
		if err == nil {
			_, err = p.uint64()
		}
	}
	for range 2 { // reserved, comment
		if err == nil {
			_, err = p.string()
		}
	}
	for err == nil && len(p.b) > 0 {
		err = k.section(p)
	}
	if err != nil {
		return k.wrong(p.at, err)
	}
	return nil
}

// krlWrong is a mistake inside a section, where the section's own offset is
// nearer than that of what follows it.
type krlWrong struct {
	at  int
	err error
}

func (w *krlWrong) Error() string { return w.err.Error() }

func (k *krl) wrong(at int, err error) error {
	if in, ok := errors.AsType[*krlWrong](err); ok {
		at, err = in.at, in.err
	}
	return fmt.Errorf("cannot read %s at byte %d: this key revocation list is damaged: %w; make it again with ssh-keygen -k", k.path, at, err)
}

func (k *krl) section(p *krlPart) error {
	at := p.at
	kind, body, err := p.section()
	if err != nil {
		return err
	}
	switch kind {
	case krlCertificates:
		err = k.certificates(body)
	case krlKeys:
		err = body.each(func(at int, blob []byte) error {
			k.all.keys[plainFingerprint(blob)] = k.place(at)
			return nil
		})
	case krlSHA1:
		err = body.each(k.sum(20, func(sum []byte, place string) { k.all.sha1[[20]byte(sum)] = place }))
	case krlSHA256:
		err = body.each(k.sum(32, func(sum []byte, place string) { k.all.keys[fingerprintOf([32]byte(sum))] = place }))
	case krlExtension:
		err = body.extension()
	default:
		return &krlWrong{at, fmt.Errorf("section %d is not known", kind)}
	}
	if err != nil {
		return body.wrong(err)
	}
	return nil
}

func (k *krl) place(at int) string { return k.path + " at byte " + strconv.Itoa(at) }

func (k *krl) sum(size int, take func(sum []byte, place string)) func(int, []byte) error {
	return func(at int, b []byte) error {
		if len(b) != size {
			return &krlWrong{at, fmt.Errorf("a fingerprint has %d bytes, not %d", len(b), size)}
		}
		take(b, k.place(at))
		return nil
	}
}

// certificates reads what is revoked of one authority; no authority is all.
func (k *krl) certificates(p *krlPart) error {
	c := revokedCerts{place: k.place(p.at), ids: map[string]bool{}, serials: map[uint64]bool{}}
	authority, err := p.string()
	if err != nil {
		return err
	}
	c.authority = string(authority)
	if _, err := p.string(); err != nil { // reserved
		return err
	}
	for len(p.b) > 0 {
		at := p.at
		kind, body, err := p.section()
		if err != nil {
			return err
		}
		switch kind {
		case krlSerials:
			err = body.serials(&c)
		case krlSerialRange:
			err = body.serialRange(&c)
		case krlSerialBitmap:
			err = body.bitmap(&c)
		case krlKeyIDs:
			err = body.each(func(_ int, id []byte) error { c.ids[string(id)] = true; return nil })
		case krlCertsExtension:
			err = body.extension()
		default:
			return &krlWrong{at, fmt.Errorf("section %#x of certificates is not known", kind)}
		}
		if err != nil {
			return body.wrong(err)
		}
	}
	k.all.certs = append(k.all.certs, c)
	return nil
}

// errNoSerial is of the number that every certificate without one has: to revoke
// it would be to revoke them all, and ssh-keygen takes no such list.
var errNoSerial = errors.New("serial number 0 is in it")

func (p *krlPart) serials(c *revokedCerts) error {
	for len(p.b) > 0 {
		n, err := p.uint64()
		if err != nil {
			return err
		}
		if n == 0 {
			return errNoSerial
		}
		c.serials[n] = true
	}
	return nil
}

func (p *krlPart) serialRange(c *revokedCerts) error {
	from, err := p.uint64()
	if err != nil {
		return err
	}
	to, err := p.uint64()
	if err != nil {
		return err
	}
	if to < from || len(p.b) > 0 {
		return fmt.Errorf("a range of serial numbers does not end where it has to")
	}
	if from == 0 {
		return errNoSerial
	}
	c.ranges = append(c.ranges, serialRange{from, to})
	return nil
}

// bitmap is a first serial and a number whose bits say which from there on.
func (p *krlPart) bitmap(c *revokedCerts) error {
	from, err := p.uint64()
	if err != nil {
		return err
	}
	bits, err := p.string()
	if err != nil {
		return err
	}
	if len(bits) > 0 && bits[0]&0x80 != 0 {
		return fmt.Errorf("a bitmap of serial numbers is negative")
	}
	set := strings.TrimLeft(string(bits), "\x00")
	if len(p.b) > 0 || set != "" && from+uint64(len(set)-1)*8+uint64(mathbits.Len8(set[0])-1) < from {
		return fmt.Errorf("a bitmap of serial numbers does not end where it has to")
	}
	in := serialBitmap{from, bits}
	if in.has(0) {
		return errNoSerial
	}
	c.bitmaps = append(c.bitmaps, in)
	return nil
}

// extension passes one over that says it may be passed over.
func (p *krlPart) extension() error {
	name, err := p.string()
	if err != nil {
		return err
	}
	critical, err := p.take(1)
	if err != nil {
		return err
	}
	if _, err := p.string(); err != nil {
		return err
	}
	if critical[0] != 0 {
		return fmt.Errorf("its critical extension %q is not known", clip(string(name)))
	}
	return nil
}

// wrong puts a mistake at where reading stopped, unless it has a place.
func (p *krlPart) wrong(err error) error {
	if _, ok := errors.AsType[*krlWrong](err); ok {
		return err
	}
	return &krlWrong{p.at, err}
}

func (p *krlPart) each(take func(at int, b []byte) error) error {
	for len(p.b) > 0 {
		at := p.at
		b, err := p.string()
		if err != nil {
			return err
		}
		if err := take(at, b); err != nil {
			return err
		}
	}
	return nil
}

func (p *krlPart) section() (kind byte, body *krlPart, err error) {
	b, err := p.take(1)
	if err != nil {
		return 0, nil, err
	}
	at := p.at + 4
	in, err := p.string()
	return b[0], &krlPart{b: in, at: at}, err
}

func (p *krlPart) take(n int) ([]byte, error) {
	if n > len(p.b) {
		return nil, fmt.Errorf("it ends %d bytes too early", n-len(p.b))
	}
	b := p.b[:n:n]
	p.b, p.at = p.b[n:], p.at+n
	return b, nil
}

func (p *krlPart) uint32() (uint32, error) {
	b, err := p.take(4)
	if err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint32(b), nil
}

func (p *krlPart) uint64() (uint64, error) {
	b, err := p.take(8)
	if err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint64(b), nil
}

func (p *krlPart) string() ([]byte, error) {
	n, err := p.uint32()
	if err != nil {
		return nil, err
	}
	return p.take(int(n))
}
