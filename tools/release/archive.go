package main

import (
	"archive/tar"
	"archive/zip"
	"cmp"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// file is one file of an archive or a package.
type file struct {
	name string
	mode os.FileMode
	data []byte
}

// writeArchive writes <path>.zip for Windows and <path>.tar.gz for the others, with one
// folder inside that is named as the archive.
func writeArchive(path string, t target, content []file, f facts) error {
	inner := filepath.Base(path)
	sorted := slices.Clone(content)
	for i := range sorted {
		sorted[i].name = inner + "/" + sorted[i].name
	}
	slices.SortFunc(sorted, func(a, b file) int { return cmp.Compare(a.name, b.name) })
	if t.os == "windows" {
		return writeWhole(path+".zip", func(w io.Writer) error { return zipOf(w, sorted, f.date) })
	}
	return writeWhole(path+".tar.gz", func(w io.Writer) error {
		g, err := gzip.NewWriterLevel(w, gzip.BestCompression)
		if err != nil {
			return err
		}
		if err := tarOf(g, sorted, f.date); err != nil {
			return err
		}
		return g.Close()
	})
}

// writeWhole creates the file, and counts the error of closing it.
func writeWhole(path string, fill func(io.Writer) error) error {
	to, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := fill(to); err != nil {
		to.Close()
		return err
	}
	return to.Close()
}

// tarOf writes the files as root's, all of one time.
func tarOf(w io.Writer, content []file, at time.Time) error {
	t := tar.NewWriter(w)
	for _, x := range content {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: x.name, Mode: int64(x.mode), Size: int64(len(x.data)), ModTime: at, Format: tar.FormatPAX}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		if _, err := t.Write(x.data); err != nil {
			return err
		}
	}
	return t.Close()
}

func zipOf(w io.Writer, content []file, at time.Time) error {
	z := zip.NewWriter(w)
	for _, x := range content {
		h := &zip.FileHeader{Name: x.name, Method: zip.Deflate, Modified: at}
		h.SetMode(x.mode)
		to, err := z.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := to.Write(x.data); err != nil {
			return err
		}
	}
	return z.Close()
}
