package ring

// Release is the version of this program; -ldflags "-X
// github.com/gitring/gitring/ring.Release=…" sets another.
var Release = "0.1.0"
