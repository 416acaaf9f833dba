//go:build !linux || (!amd64 && !arm64)

package frontprogram

import "embed"

// Fronts run on Linux: elsewhere there is no program.
var blob embed.FS
