package frontprogram

import "embed"

//go:embed amd64
var blob embed.FS
