// Package secretservice runs a Secret Service, which is the keyring of Linux desktops, on a D-Bus of its own. Tests of lashd use it in the
// place of a real keyring: the library that lashd speaks to keyrings with cannot tell the two apart. It keeps secrets in memory, in one
// collection, and can be locked as a real one is: unlocking it then waits for a person.
package secretservice

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/godbus/dbus/v5"

	"lashd/test/skip"
	"lashd/test/wait"
)

// The names of the Secret Service, as its specification has them.
const (
	name       = "org.freedesktop.secrets"
	root       = dbus.ObjectPath("/org/freedesktop/secrets")
	collection = root + "/collection/login"
	session    = root + "/session/s1"
	prompt     = root + "/prompt/p1"
	nothing    = dbus.ObjectPath("/")
	iface      = "org.freedesktop.Secret."
)

// Service is a running Secret Service. It is safe for concurrent use.
type Service struct {
	Address string // of the bus, for DBUS_SESSION_BUS_ADDRESS

	conn *dbus.Conn

	mu     sync.Mutex
	locked bool
	made   int                        // items so far
	items  map[dbus.ObjectPath]stored // by their path on the bus
}

// stored is an item with its secret.
type stored struct {
	attributes map[string]string
	secret     secret
}

// secret is a secret as the bus carries it.
type secret struct {
	Session     dbus.ObjectPath
	Parameters  []byte
	Value       []byte
	ContentType string
}

// config is the configuration of the bus. It listens at a socket of its own, and everything is allowed there.
const config = `<busconfig><type>session</type><listen>unix:path=%s</listen><auth>EXTERNAL</auth><policy context="default">
<allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>`

// Start starts a bus with a Secret Service that ends with the test.
func Start(t testing.TB) *Service {
	t.Helper()
	program, err := exec.LookPath("dbus-daemon")
	skip.Unless(t, "DBUS", err == nil, "dbus-daemon is not installed")
	dir, err := os.MkdirTemp("", "bus-") // paths of sockets must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket, file := filepath.Join(dir, "s"), filepath.Join(dir, "conf")
	if err := os.WriteFile(file, fmt.Appendf(nil, config, socket), 0o600); err != nil {
		t.Fatal(err)
	}
	bus := exec.Command(program, "--config-file="+file, "--nofork", "--nopidfile")
	if err := bus.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		bus.Process.Kill()
		bus.Wait() // killed
	})
	s := &Service{Address: "unix:path=" + socket, items: map[dbus.ObjectPath]stored{}}
	wait.Until(t, "the bus listens", func() bool {
		s.conn, err = dbus.Connect(s.Address)
		return err == nil
	})
	t.Cleanup(func() { s.conn.Close() })
	s.serve(t)
	return s
}

// serve puts the objects of the service on the bus.
func (s *Service) serve(t testing.TB) {
	t.Helper()
	for _, object := range []struct {
		path    dbus.ObjectPath
		iface   string
		methods map[string]any
	}{
		{root, iface + "Service", map[string]any{"OpenSession": s.openSession, "Unlock": s.unlock}},
		{root, "org.freedesktop.DBus.Properties", map[string]any{"Get": func(string, string) (dbus.Variant, *dbus.Error) {
			return dbus.MakeVariant([]dbus.ObjectPath{collection}), nil
		}}},
		{collection, iface + "Collection", map[string]any{"CreateItem": s.createItem, "SearchItems": s.searchItems}},
		{session, iface + "Session", map[string]any{"Close": func() *dbus.Error { return nil }}},
		{prompt, iface + "Prompt", map[string]any{"Prompt": func(string) *dbus.Error { return nil }}}, // Unlock completes it
	} {
		if err := s.conn.ExportMethodTable(object.methods, object.path, object.iface); err != nil {
			t.Fatal(err)
		}
	}
	if reply, err := s.conn.RequestName(name, dbus.NameFlagDoNotQueue); err != nil || reply != dbus.RequestNameReplyPrimaryOwner {
		t.Fatal(reply, err)
	}
}

// Lock locks the keyring. From then on, a request to unlock it opens a prompt that waits for a person.
func (s *Service) Lock() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.locked = true
}

// Unlock is the person who answers the prompt.
func (s *Service) Unlock(t testing.TB) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.locked = false
	if err := s.conn.Emit(prompt, iface+"Prompt.Completed", false, dbus.MakeVariant([]dbus.ObjectPath{collection})); err != nil {
		t.Fatal(err)
	}
}

// Secrets returns the secrets by the name of their account.
func (s *Service) Secrets() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]string{}
	for _, item := range s.items {
		all[item.attributes["username"]] = string(item.secret.Value)
	}
	return all
}

func (s *Service) openSession(string, dbus.Variant) (dbus.Variant, dbus.ObjectPath, *dbus.Error) {
	return dbus.MakeVariant(""), session, nil
}

// unlock unlocks objects at once, or names the prompt that a person must answer first.
func (s *Service) unlock(objects []dbus.ObjectPath) ([]dbus.ObjectPath, dbus.ObjectPath, *dbus.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.locked {
		return []dbus.ObjectPath{}, prompt, nil
	}
	return objects, nothing, nil
}

// createItem stores a secret. It replaces the item with the same attributes.
func (s *Service) createItem(properties map[string]dbus.Variant, value secret, _ bool) (dbus.ObjectPath, dbus.ObjectPath, *dbus.Error) {
	attributes, ok := properties[iface+"Item.Attributes"].Value().(map[string]string)
	if !ok {
		return nothing, nothing, dbus.NewError("org.freedesktop.DBus.Error.InvalidArgs", nil)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for path, item := range s.items {
		if maps.Equal(item.attributes, attributes) {
			s.items[path] = stored{attributes, value}
			return path, nothing, nil
		}
	}
	s.made++
	path := collection + dbus.ObjectPath(fmt.Sprint("/i", s.made))
	methods := map[string]any{
		"GetSecret": func(dbus.ObjectPath) (secret, *dbus.Error) { return s.secretOf(path) },
		"Delete":    func() (dbus.ObjectPath, *dbus.Error) { return s.remove(path) },
	}
	if err := s.conn.ExportMethodTable(methods, path, iface+"Item"); err != nil {
		return nothing, nothing, dbus.MakeFailedError(err)
	}
	s.items[path] = stored{attributes, value}
	return path, nothing, nil
}

// searchItems returns the items that have all of the attributes.
func (s *Service) searchItems(attributes map[string]string) ([]dbus.ObjectPath, *dbus.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := []dbus.ObjectPath{}
	for path, item := range s.items {
		if maps.Equal(item.attributes, attributes) {
			found = append(found, path)
		}
	}
	return found, nil
}

// secretOf returns the secret of an item.
func (s *Service) secretOf(path dbus.ObjectPath) (secret, *dbus.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	value := s.items[path].secret
	value.Session, value.Parameters = session, []byte{}
	return value, nil
}

// remove deletes an item.
func (s *Service) remove(path dbus.ObjectPath) (dbus.ObjectPath, *dbus.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.items, path)
	return nothing, nil
}
