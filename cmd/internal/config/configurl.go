package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"

	"github.com/pelletier/go-toml/v2/unstable"
)

// Move is another address of a provider in config.toml.
type Move struct {
	Before Config // what the file says; where it has errors, as far as it can be read
	After  Config
	data   []byte // of the file with the address
}

// LoadWithBaseURL returns what config.toml says, and what it would say with another address of a provider. It fails if the file would then
// have errors or another address, which inline tables and dotted keys can cause.
func LoadWithBaseURL(home, name, url string) (m Move, err error) {
	before, err := os.ReadFile(File(home))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return m, err
	}
	m.Before, _ = Parse(before) // the address may be what it lacks
	m.data = WithBaseURL(before, name, url)
	m.After, err = Parse(m.data)
	if err == nil && m.After.Providers[name].BaseURL != url {
		err = errors.New("the file sets it in another way")
	}
	if err != nil {
		return m, fmt.Errorf("cannot set base_url in [providers.%s] of %s: %w; set it there yourself", name, File(home), err)
	}
	return m, nil
}

// WithBaseURL returns a config.toml with another base_url in the table of a provider; all other bytes stay. A file without the table gets
// it at its end.
func WithBaseURL(data []byte, name, url string) []byte {
	line := "base_url = " + strconv.Quote(url)
	end, from, to := baseURLOf(data, name)
	switch {
	case to > 0:
		return slices.Concat(data[:from], []byte(strconv.Quote(url)), data[to:])
	case end > 0:
		return slices.Concat(data[:end], []byte("\n"+line), data[end:])
	}
	gap := ""
	if len(data) > 0 {
		gap = "\n"
	}
	if len(data) > 0 && !bytes.HasSuffix(data, []byte("\n")) {
		gap = "\n\n"
	}
	return fmt.Appendf(slices.Clip(data), "%s[providers.%s]\n%s\n", gap, name, line)
}

// baseURLOf returns where the line of a provider's table header ends, and where the value of its base_url begins and ends. Each is 0 if
// the file does not have it.
func baseURLOf(data []byte, name string) (end, from, to int) {
	var p unstable.Parser
	p.Reset(data)
	inside := false
	for p.NextExpression() {
		e := p.Expression()
		_, key := keyOf(&p, e)
		switch {
		case e.Kind != unstable.KeyValue:
			if inside = e.Kind == unstable.Table && slices.Equal(key, []string{"providers", name}); inside {
				end = lineEnd(data, e)
			}
		case inside && slices.Equal(key, []string{"base_url"}):
			value := e.Value().Raw
			return end, int(value.Offset), int(value.Offset + value.Length)
		}
	}
	return end, 0, 0
}

// lineEnd returns where the line of a table header ends, without the line break.
func lineEnd(data []byte, header *unstable.Node) int {
	at := 0
	for it := header.Key(); it.Next(); {
		at = int(it.Node().Raw.Offset)
	}
	if i := bytes.IndexByte(data[at:], '\n'); i >= 0 {
		return at + i
	}
	return len(data)
}
