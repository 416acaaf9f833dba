//go:build !unix

package disk

// noFollow is nothing where links of that kind are not known.
const noFollow = 0
