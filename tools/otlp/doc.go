// Package otlp holds what gitring posts to a collector of traces to the code by which OpenTelemetry's
// own collector reads it, and to its protocol's definition. It has a go.mod of its own: gitring needs
// neither to post.
package otlp
