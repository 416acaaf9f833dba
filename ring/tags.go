package ring

import "time"

// TagKey is one tag of one repository for one platform, however it is written; "" for an image
// that names its digest or has no name.
func TagKey(image, platform string) string {
	n := ParseImage(image)
	if n.Name == "" || n.Digest != "" {
		return ""
	}
	if n.Tag == "" {
		n.Tag = "latest"
	}
	key := n.Name + ":" + n.Tag
	if platform != "" {
		key += " " + platform
	}
	return key
}

// TagRow is what a registry said of a tag that is followed by the clock.
type TagRow struct {
	Tag   string `json:"tag"`   // TagKey
	Image string `json:"image"` // as the service that was asked for writes it
	// Pin is what the tag meant by the last answer, Seen since when this host knows that; zero
	// before the first answer.
	Pin  Pin       `json:"pin,omitzero"`
	Seen time.Time `json:"seen,omitzero"`
	// Asked is when the registry answered last, or, before the first answer, when the tag was
	// resolved for a commit. A name that it does not know is an answer, too: Says tells it.
	Asked time.Time `json:"asked"`
	// Tried is when nobody answered last, Fails how often since the last answer.
	Tried time.Time `json:"tried,omitzero"`
	Fails int       `json:"fails,omitempty"`
	// Later is until when the registry asked for no further question; zero where it did not.
	Later time.Time `json:"later,omitzero"`
	Says  string    `json:"says,omitempty"`
	// Moves are those of the last 24 hours, the oldest first.
	Moves []MovedTag `json:"moves,omitempty"`
	// Judged says that Back was found out for what the tag means now: that an image of this
	// digest had come into force here before the tag was seen at it. It is no comparison of
	// times, which a clock that is set back turns around.
	Judged bool `json:"judged,omitempty"`
	Back   bool `json:"back,omitempty"`
	// Told is the digest of which people were told that it waits for them.
	Told string `json:"told,omitempty"`
}

// MovedTag is that a tag was seen at another digest than before.
type MovedTag struct {
	At   time.Time `json:"at"`
	From string    `json:"from"` // digests
	To   string    `json:"to"`
}

// Row is by tag.
func (f TagRow) Row() (string, string) { return "tag", f.Tag }

// Approved is the key of a person's yes to what the tag means now.
func (f *TagRow) Approved() SHA { return SHA(f.Tag + "@" + f.Pin.Digest()) }

// RanRow is that an image came into force on this host. The digest is what counts: under
// another tag, or from another registry, it is the same image.
type RanRow struct {
	Digest string    `json:"digest"`
	At     time.Time `json:"at"` // the first time
}

// Row is by digest.
func (f RanRow) Row() (string, string) { return "ran", f.Digest }
