package pluginstate

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"lashd/engine/plugin"
	"lashd/persistence"
)

// Execution is the prefix of the components that store the state of the code executor: one for each global, so
// that only changed ones are written. They are read only when the executor is opened.
const Execution = "execution"

// globalChanges returns the components of a changed state of the code executor, ordered by name.
func globalChanges(change plugin.ExecutionChange) (parts []persistence.Component) {
	for _, name := range slices.Sorted(maps.Keys(change.Changed)) {
		body := change.Changed[name]
		if body == nil {
			body = []byte{} // nil would remove the component
		}
		parts = append(parts, persistence.Component{Name: globalPart(name), Body: body})
	}
	for _, name := range change.Removed {
		parts = append(parts, persistence.Component{Name: globalPart(name)})
	}
	return parts
}

// globalPart returns the name of the component of a global.
func globalPart(name string) string { return Execution + "/" + url.PathEscape(name) }

// Globals returns the values of the code executor by name, from their components. It returns nil for none.
func Globals(parts map[string][]byte) (map[string][]byte, error) {
	var values map[string][]byte
	for part, body := range parts {
		name, err := url.PathUnescape(strings.TrimPrefix(part, Execution+"/"))
		if err != nil {
			return nil, fmt.Errorf("component %s: %w", part, persistence.ErrCorrupt)
		}
		if values == nil {
			values = map[string][]byte{}
		}
		values[name] = body
	}
	return values, nil
}
