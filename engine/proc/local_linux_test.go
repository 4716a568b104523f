package proc

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"lashd/test/skip"
)

// Programs of the tests, which run in a sandbox.
const (
	// echo listens at a path, answers one connection in upper case, and connects to itself.
	echo = `
import socket,sys,threading
s=socket.socket(socket.AF_UNIX,getattr(socket,sys.argv[2]) if len(sys.argv)>2 else socket.SOCK_STREAM); s.bind(sys.argv[1]); s.listen(1)
def one():
  c,_=s.accept(); c.send(c.recv(99).upper()); c.close()
threading.Thread(target=one).start()
c=socket.socket(socket.AF_UNIX,s.type); c.connect(sys.argv[1]); c.send(b"hello"); print(c.recv(99).decode())
`
	// reach connects to a path and says what it got.
	reach = `
import socket,sys
c=socket.socket(socket.AF_UNIX); c.settimeout(5)
try: c.connect(sys.argv[1]); print("reached",c.recv(99))
except OSError as e: print(e.errno)
`
)

// listen makes a server at a path and returns how many connections it got.
func listen(t *testing.T, path string) (count func() int) {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return func() (n int) {
		for ; ; n++ {
			l.(*net.UnixListener).SetDeadline(time.Now().Add(time.Millisecond))
			c, err := l.Accept()
			if err != nil {
				return n
			}
			c.Close()
		}
	}
}

func TestViewLocalSockets(t *testing.T) {
	p := ownPlace(t)
	skip.Unless(t, "UNIX_DIAG", canBroker(), "the kernel does not list local sockets")
	for name, text := range map[string]string{"echo.py": echo, "reach.py": reach} {
		if err := os.WriteFile(filepath.Join(p.work, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(p.work, "outside"), 0o700); err != nil {
		t.Fatal(err)
	}
	counts := []func() int{
		listen(t, filepath.Join(p.home, "docker.sock")), listen(t, filepath.Join(p.work, "outside", "sock")), listen(t, filepath.Join(p.temp, "sock")),
		listen(t, "@"+filepath.Base(filepath.Dir(p.home))),
	}
	for name, c := range map[string]struct{ script, want string }{
		"in the workspace":                      {"python3 echo.py $PWD/s", "HELLO\n"},
		"in /tmp":                               {"python3 echo.py /tmp/s", "HELLO\n"},
		"in its own shared memory":              {"python3 echo.py /dev/shm/s", "HELLO\n"},
		"by a relative path":                    {"mkdir d && cd d && python3 ../echo.py s && cd .. && python3 echo.py d/../d/t", "HELLO\nHELLO\n"},
		"by a link":                             {"ln -s /tmp l && python3 echo.py l/s2", "HELLO\n"},
		"without a path":                        {"python3 - <<'END'\nimport sys\nsys.argv=['x','\\0mine']\nexec(open('echo.py').read())\nEND", "HELLO\n"},
		"of packets":                            {"python3 echo.py $PWD/p SOCK_SEQPACKET", "HELLO\n"},
		"of Python's multiprocessing":           {python3("import multiprocessing as m\nwith m.Manager() as g: d=g.dict(); d[1]=2; print(dict(d))"), "{1: 2}\n"},
		"that is not there":                     {"python3 reach.py $PWD/none", "2\n"},
		"that is a file":                        {"python3 reach.py $PWD/file", "111\n"},
		"without a server":                      {python3("import socket\nsocket.socket(socket.AF_UNIX).bind('dead')") + "python3 reach.py dead", "111\n"},
		"of a server outside":                   {"python3 reach.py $HOME/docker.sock", "13\n"},
		"of a server outside, in the workspace": {"python3 reach.py $PWD/outside/sock; ln outside/sock h; python3 reach.py h; ln -s outside o; python3 reach.py o/sock; mv outside/sock m; python3 reach.py m; mv m outside/sock", "111\n111\n111\n111\n"},
		"of a server outside, in /tmp":          {"python3 reach.py /tmp/sock", "111\n"},
		"without a path, of a server outside":   {python3("import socket\ntry: socket.socket(socket.AF_UNIX).connect('\\0" + filepath.Base(filepath.Dir(p.home)) + "'); print('reached')\nexcept OSError as e: print(e.errno)"), "111\n"},
		"for single messages":                   {python3("import socket\ntry: socket.socket(socket.AF_UNIX,socket.SOCK_DGRAM); print('made')\nexcept OSError as e: print(e.errno)"), "13\n"},
		"through the directories of others":     {"python3 reach.py /proc/1/root$HOME/docker.sock; python3 reach.py /proc/self/cwd/outside/sock; python3 reach.py /proc/1/cwd/x", "40\n40\n40\n"},
		"with the name of its own of before":    {python3("import socket,os\ns=socket.socket(socket.AF_UNIX); s.bind('own'); s.listen(1); os.unlink('own'); os.link('outside/sock','own')\nc=socket.socket(socket.AF_UNIX)\ntry: c.connect('own'); print('reached')\nexcept OSError as e: print(e.errno)"), "111\n"},
		"and other connections still work":      {python3("import socket\ns=socket.create_server(('127.0.0.1',0)); c=socket.create_connection(s.getsockname()); s.accept()[0].send(b'tcp'); print(c.recv(9).decode())\nu=socket.socket(socket.AF_INET,socket.SOCK_DGRAM); u.connect(('127.0.0.1',9)); print('udp')\nn=socket.socket()\ntry: n.connect(('127.0.0.1',1))\nexcept OSError as e: print(type(e).__name__)"), "tcp\nudp\nConnectionRefusedError\n"},
		"and calls with bad arguments fail":     {python3("import ctypes,socket\nl=ctypes.CDLL(None,use_errno=True)\ns=socket.socket(socket.AF_UNIX)\nb=ctypes.create_string_buffer(200)\nfor a in ((-1,b,9),(99,b,9),(0,b,9),(s.fileno(),None,9),(s.fileno(),b,0),(s.fileno(),b,-1),(s.fileno(),b,129),(s.fileno(),b,9),(s.fileno(),b'\\1\\0',2)):\n  print(l.connect(*a),ctypes.get_errno(),end=' ')\nprint()"), "-1 9 -1 9 -1 88 -1 14 -1 22 -1 22 -1 22 -1 22 -1 22 \n"},
	} {
		t.Run("part11/sockets local sockets "+name, func(t *testing.T) {
			if got := p.does(t, c.script); got != c.want {
				t.Errorf("%q\nwant %q", got, c.want)
			}
			for i, count := range counts {
				if n := count(); n != 0 {
					t.Errorf("server %d outside got %d connections", i, n)
				}
			}
		})
	}
}

// TestViewSocketRaces lets programs change what a connection leads to while the broker looks at it.
func TestViewSocketRaces(t *testing.T) {
	p := ownPlace(t)
	skip.Unless(t, "UNIX_DIAG", canBroker(), "the kernel does not list local sockets")
	outside := listen(t, filepath.Join(p.work, "outside"))
	const head = `
import ctypes,os,socket,threading
l=ctypes.CDLL(None)
s=socket.socket(socket.AF_UNIX); s.bind("own"); s.listen(100)
accepted=[]
def accept():
  while True: accepted.append(s.accept()[0])
threading.Thread(target=accept,daemon=True).start()
def name(path): return b"\1\0"+path.encode()+bytes(100-len(path))
def forever(f):
  def run():
    while True: f()
  threading.Thread(target=run,daemon=True).start()
`
	for what, program := range map[string]string{
		"the address": `
b=ctypes.create_string_buffer(102)
def swap(): ctypes.memmove(b,name("own"),102); ctypes.memmove(b,name("outside"),102)
forever(swap)
for i in range(300): c=socket.socket(socket.AF_UNIX); l.connect(c.fileno(),b,102); c.close()
`,
		"the file": `
os.link("own","a"); os.link("outside","b")
def swap(): os.rename("a","x") if os.path.exists("a") else None; os.link("own","a"); os.link("b","y"); os.rename("y","x")
forever(swap)
for i in range(300): c=socket.socket(socket.AF_UNIX); l.connect(c.fileno(),name("x"),102); c.close()
`,
		"a link": `
def swap():
  for to in "own","outside": os.symlink(to,"n"); os.rename("n","x")
os.symlink("own","x"); forever(swap)
for i in range(300): c=socket.socket(socket.AF_UNIX); l.connect(c.fileno(),name("x"),102); c.close()
`,
		"the directory": `
os.mkdir("e"); os.mkdir("f"); os.link("own","e/s"); os.link("outside","f/s")
def swap():
  for a,b in (("e","d"),("d","e"),("f","d"),("d","f")): os.rename(a,b)
forever(swap)
for i in range(300): c=socket.socket(socket.AF_UNIX); l.connect(c.fileno(),name("d/s"),102); c.close()
os.link("own","last"); c=socket.socket(socket.AF_UNIX); l.connect(c.fileno(),name("last"),102)
`,
		"the socket": `
t=socket.socket(); c=socket.socket(socket.AF_UNIX); n=os.dup(0)
def swap(): u=socket.socket(socket.AF_UNIX); os.dup2(t.fileno(),n); os.dup2(u.fileno(),n)
forever(swap)
for i in range(300): l.connect(n,name("outside"),102); l.connect(n,name("own"),102)
`,
	} {
		t.Run("part11/sockets a program that swaps "+what+" reaches no server outside", func(t *testing.T) {
			const end = `
import time
for i in range(1000):
  if accepted: break
  time.sleep(0.01)
print("own" if accepted else "nothing",flush=True); os._exit(0)
`
			if out := p.does(t, "rm -rf own a b x y n d e f last\n"+python3(head+program+end)); out != "own\n" {
				t.Errorf("it says %q", out)
			}
			if n := outside(); n != 0 {
				t.Errorf("it reached the server outside %d times", n)
			}
		})
	}
	t.Run("part11/sockets a program that waits for a connection can be stopped", func(t *testing.T) {
		w := newWitness(t)
		c := p.command("exec " + python3(`import socket,sys
s=socket.socket(socket.AF_UNIX); s.bind("full"); s.listen(0)
print("ready",flush=True)
while True: c=socket.socket(socket.AF_UNIX); c.connect("full"); globals().setdefault("all",[]).append(c)`))
		c.Stdout, c.Grace = w.end, time.Minute
		child := start(t, t.Context(), c)
		w.release()
		w.line(t)
		child.Stop(nil)
		if exit := wait(t, child); exit.Signal != "SIGTERM" {
			t.Errorf("%+v", exit)
		}
	})
	t.Run("part11/sockets signals do not make a program connect twice", func(t *testing.T) {
		out := p.does(t, python3(`import signal,socket
signal.signal(signal.SIGALRM,lambda *a: None); signal.siginterrupt(signal.SIGALRM,False); signal.setitimer(signal.ITIMER_REAL,0.0003,0.0003)
s=socket.socket(socket.AF_UNIX); s.bind("signals"); s.listen(500)
for i in range(400): socket.socket(socket.AF_UNIX).connect("signals")
n=0; s.setblocking(False)
try:
  while True: s.accept(); n+=1
except BlockingIOError: signal.setitimer(signal.ITIMER_REAL,0); print(n)`))
		if out != "400\n" {
			t.Errorf("it says %q", out)
		}
	})
}

// TestViewTools runs programs that talk to servers of their own.
func TestViewTools(t *testing.T) {
	p := ownPlace(t)
	skip.Unless(t, "UNIX_DIAG", canBroker(), "the kernel does not list local sockets")
	for tool, c := range map[string]struct{ script, want string }{
		"tmux":      {"export TERM=xterm TMUX_TMPDIR=/tmp; tmux new-session -d 'sleep 600' && tmux list-sessions | cut -d: -f1", "0\n"},
		"gpg-agent": {"mkdir -m 700 $PWD/keys && gpg --homedir $PWD/keys --batch --quiet --passphrase '' --quick-gen-key me@example.com 2>/dev/null; gpg --homedir $PWD/keys --batch --list-keys 2>/dev/null | grep -o 'me@[a-z.]*'", "me@example.com\n"},
	} {
		t.Run("part11/sockets "+tool+" works", func(t *testing.T) {
			_, err := exec.LookPath(tool)
			skip.Unless(t, "TOOLS", err == nil, "there is no "+tool)
			if out := p.does(t, c.script); out != c.want {
				t.Errorf("it says %q", out)
			}
		})
	}
}
