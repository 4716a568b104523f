package config

import "encoding/json"

// codeConfig has the limits of one code cell. A missing key means the default of the worker.
type codeConfig struct {
	Steps     *int64   `toml:"steps" from:"1000" to:"1000000000000"` // steps of the interpreter; default 50 million
	Time      duration `toml:"time"`                                 // running time, without calls of tools and waiting for people; default 30s
	MemoryMiB *int64   `toml:"memory_mib" from:"32" to:"65536"`      // memory of the process; default 256
	OutputKiB *int64   `toml:"output_kib" from:"1" to:"1048576"`     // printed text; default 256
	ValueKiB  *int64   `toml:"value_kib" from:"1" to:"4096"`         // one global, or the arguments of one call; default 4096
}

// Options returns the limits as the worker reads them.
func (c codeConfig) Options() ([]byte, error) {
	in := func(n *int64, unit int64) int64 {
		if n == nil {
			return 0
		}
		return *n * unit
	}
	return json.Marshal(struct {
		Steps  int64 `json:"steps,omitempty"`
		TimeMs int64 `json:"timeMs,omitempty"`
		Memory int64 `json:"memory,omitempty"`
		Output int64 `json:"output,omitempty"`
		Value  int64 `json:"value,omitempty"`
	}{in(c.Steps, 1), c.Time.Milliseconds(), in(c.MemoryMiB, 1<<20), in(c.OutputKiB, 1<<10), in(c.ValueKiB, 1<<10)})
}
