package pluginloader

import (
	"encoding/json"
	"errors"
	"fmt"

	"lashd/engine/tool"
	"lashd/pluginloader/manifest"
)

var errNoOptions = errors.New("the plugin has no options: its manifest has no config")

// checkOptions refuses options that a plugin does not take. None are fine.
func checkOptions(m *manifest.Plugin, options json.RawMessage) error {
	switch {
	case len(options) == 0:
		return nil
	case len(m.Config) == 0:
		return errNoOptions
	}
	if err := tool.Fits(m.Config, options); err != nil {
		return fmt.Errorf("options: %w", err)
	}
	return nil
}
