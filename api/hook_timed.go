package api

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// HookSkew is how far the clock of a sender that signs the time may be from ours.
const HookSkew = 5 * time.Minute

// mostSignatures bounds the work that one header asks for. Senders that rotate a key
// send two.
const mostSignatures = 8

// TimedHeader is of the generic way in.
const TimedHeader = "X-Gitring-Signature"

// timedProof is `t=<unix>,v1=<hex>` with HMAC-SHA256 over "t.body": for every sender
// that has no way of its own. Several v1 are allowed, any of them may be right.
func timedProof(secrets [][]byte) (proof, error) {
	return func(h http.Header, now time.Time) (func([]byte) bool, string) {
		var at string
		var given [][]byte
		for part := range strings.SplitSeq(h.Get(TimedHeader), ",") {
			key, value, _ := strings.Cut(strings.TrimSpace(part), "=")
			switch key {
			case "t":
				if at != "" {
					return nil, "two times in " + TimedHeader
				}
				at = value
			case "v1":
				if sum, err := hex.DecodeString(value); err == nil && len(sum) == sha256.Size && len(given) < mostSignatures {
					given = append(given, sum)
				}
			}
		}
		if len(given) == 0 {
			return nil, "no signature in " + TimedHeader
		}
		if why := untimely(at, now); why != "" {
			return nil, why
		}
		return func(body []byte) bool { return anyMAC(secrets, given, []byte(at+"."), body) }, ""
	}, nil
}

// untimely says what is wrong with a time of Unix seconds; "" when it is near enough.
func untimely(at string, now time.Time) string {
	if at == "" || len(at) > 12 || strings.Trim(at, "0123456789") != "" {
		return "no time beside the signature"
	}
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		return "no time beside the signature"
	}
	if off := now.Sub(time.Unix(seconds, 0)); off > HookSkew || off < -HookSkew {
		return "signed " + off.Round(time.Second).String() + " ago by our clock; at most " + HookSkew.String() + " either way is taken"
	}
	return ""
}
