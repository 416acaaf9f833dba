package frontprogram

import "embed"

//go:embed arm64
var blob embed.FS
