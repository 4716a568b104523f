package plugin

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"lashd/internal/strictjson"
	"lashd/rpc/protocol"
)

// ErrNoDriver means that no factory has the id of the driver that a session asks for.
var ErrNoDriver = errors.New("unknown driver")

// DescribedDriver is a Factory of a driver that clients can describe where a person chooses the driver of a new session.
type DescribedDriver interface {
	Factory
	// Describe returns the title of the driver, of a few words, and a sentence about how the model works with it.
	Describe() (title, about string)
}

// Drivers returns the drivers, from which a session's configuration chooses, ordered by name. Default is not set: the
// daemon's settings decide about it. A factory that is no
// DescribedDriver has its id as title.
func (h *Host) Drivers() []protocol.DriverInfo {
	infos := []protocol.DriverInfo{}
	for _, f := range h.drivers {
		info := protocol.DriverInfo{Name: f.ID(), Title: f.ID()}
		if d, ok := f.(DescribedDriver); ok {
			info.Title, info.About = d.Describe()
		}
		infos = append(infos, info)
	}
	slices.SortFunc(infos, func(a, b protocol.DriverInfo) int { return cmp.Compare(a.Name, b.Name) })
	return infos
}

// NoDriver returns an ErrNoDriver for a name that is not among the known drivers. The message suggests the nearest one
// and lists all of them.
func NoDriver(name string, known []protocol.DriverInfo) error {
	names, near := DriverNames(known), ""
	if n := strictjson.Nearest(name, names); n != "" {
		near = fmt.Sprintf("; did you mean %q?", n)
	}
	return fmt.Errorf("%w %q%s (known drivers: %s)", ErrNoDriver, name, near, strings.Join(names, ", "))
}

// DriverNames returns the names of drivers, in their order.
func DriverNames(drivers []protocol.DriverInfo) []string {
	var names []string
	for _, d := range drivers {
		names = append(names, d.Name)
	}
	return names
}
