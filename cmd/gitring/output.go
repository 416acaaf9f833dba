package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"gopkg.in/yaml.v3"

	"github.com/gitring/gitring/checkout"
	"github.com/gitring/gitring/exit"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/screen"
)

// outputs are the forms of -o.
var outputs = []string{"table", "wide", "json", "yaml"}

// checkOutput judges -o before anything is done.
func (g *globals) checkOutput(cmd *cobra.Command) error {
	if nameOf(cmd) == "prove" && !cmd.Flags().Changed("check") && !slices.Contains(outputs, g.output) {
		g.file, g.output = g.output, "table" // of this verb -o may name the file that it writes
	}
	if !slices.Contains(outputs, g.output) {
		return &exit.Failure{Code: exit.Usage, Says: fmt.Sprintf("-o %q is not known", g.output), Hint: ring.Meant(g.output, outputs)}
	}
	return nil
}

// machine reports whether results are for programs.
func (g *globals) machine() bool { return g.output == "json" || g.output == "yaml" }

// screen is an empty one for where results go.
func (g *globals) screen() *screen.Screen {
	width := g.width()
	return screen.New(width > 0 && g.colors(), width)
}

// encode writes v for programs: indented JSON, or the same as YAML.
func (g *globals) encode(v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("cannot encode the result: %w", err)
	}
	if g.output == "yaml" {
		return g.encodeYAML(b.Bytes())
	}
	_, err := g.out.Write(b.Bytes())
	return err
}

// encodeYAML keeps JSON's order of keys: JSON is YAML, written another way.
func (g *globals) encodeYAML(body []byte) error {
	var n yaml.Node
	if err := yaml.Unmarshal(body, &n); err != nil {
		return fmt.Errorf("cannot encode the result: %w", err)
	}
	unquote(&n)
	enc := yaml.NewEncoder(g.out)
	enc.SetIndent(2)
	if err := enc.Encode(&n); err != nil {
		return fmt.Errorf("cannot encode the result: %w", err)
	}
	return enc.Close()
}

// unquote writes mappings as blocks and texts without quotes where no reader,
// also one of YAML 1.1, takes them for anything else.
func unquote(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" {
		var plain yaml.Node
		if plain.Encode(n.Value) == nil {
			n.Style = plain.Style
		}
		return
	}
	n.Style = 0
	for _, in := range n.Content {
		unquote(in)
	}
}

// encodeLine writes v as one line of a stream: NDJSON, or a YAML document.
func (g *globals) encodeLine(v any) error {
	if g.output == "yaml" {
		if _, err := fmt.Fprintln(g.out, "---"); err != nil {
			return err
		}
		return g.encode(v)
	}
	enc := json.NewEncoder(g.out)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// person is who types a verb, for a clone.
func (g *globals) person() checkout.Person {
	return checkout.Person{Errs: g.err, Now: g.now, Notice: g.notice}
}
