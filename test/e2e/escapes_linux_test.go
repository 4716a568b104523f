package e2e

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// secretText is in every secret. Whatever prints it has escaped.
const secretText = "CANARY-7f3a"

// prison is a home outside of /tmp with secrets, servers that must not be reached, and a process that must not be touched.
type prison struct {
	*home
	reached atomic.Int32 // connections and datagrams to the servers, and what was typed into the terminal
	tcp     string       // port of the TCP server
	names   string       // port of the UDP server, such as one for names
	tty     string       // a terminal
	display string       // number of the server of X11
	segment int          // id of shared memory of System V
	victim  *exec.Cmd
}

// newPrison makes the home and starts what must not be reached.
func newPrison(t *testing.T) *prison {
	t.Helper()
	base, err := os.MkdirTemp("/var/tmp", "lashd-escapes-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	h := newHome(t, nil)
	h.dir, h.user, h.work = filepath.Join(base, "data"), filepath.Join(base, "user"), filepath.Join(base, "user", "work")
	p := &prison{home: h}
	for name, text := range map[string]string{
		"user/work/.vscode/tasks.json": "{}", "user/work/.envrc": "# mine\n", "user/work/.agents/rules.md": "mine\n",
		"data/keys.json": secretText, "user/.ssh/id_ed25519": secretText, "user/.aws/credentials": secretText, "user/.netrc": secretText, "user/.config/gh/hosts.yml": secretText,
		"user/.git-credentials": secretText, "user/.gnupg/private": secretText, "user/.bashrc": "# mine\n", "user/other/file": "other\n", "user/work/file": "work\n",
		"data/config.toml": "script = \"" + filepath.Join(base, "data", "script.json") + "\"\n", "data/script.json": `{"turns":[]}`,
	} {
		path := filepath.Join(base, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("git", "-C", p.work, "init", "-q").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	p.listens("tcp", "127.0.0.1:0")
	p.listens("unix", filepath.Join(base, "user", "docker.sock"))
	p.listens("unix", filepath.Join(base, "user", "bus"))
	p.listens("unix", "@lashd-escapes-"+filepath.Base(base))
	p.shows()
	p.env = append(p.env, "DBUS_SESSION_BUS_ADDRESS=unix:path="+filepath.Join(base, "user", "bus"), "DISPLAY=:"+p.display, "SSH_AUTH_SOCK="+filepath.Join(base, "user", "docker.sock"))
	p.hears("unixgram", filepath.Join(base, "user", "log"))
	p.names = p.hears("udp", "127.0.0.1:0")
	p.shares()
	p.opensTerminal()
	p.victim = exec.Command("sleep", "1000")
	p.victim.Env = append(os.Environ(), "SECRET="+secretText)
	if err := p.victim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.victim.Process.Kill(); p.victim.Wait() })
	return p
}

// listens counts the connections to a server.
func (p *prison) listens(network, address string) {
	p.t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { l.Close() })
	if a, ok := l.Addr().(*net.TCPAddr); ok {
		p.tcp = fmt.Sprint(a.Port)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.reached.Add(1)
			io.WriteString(c, secretText+"\n")
			c.Close()
		}
	}()
}

// displays counts the servers of X11 of this process, and x11 begins the paths of their sockets.
var displays atomic.Int32

const x11 = "/tmp/.X11-unix/X"

// shows listens where a server of X11 does.
func (p *prison) shows() {
	p.t.Helper()
	p.display = fmt.Sprint(1000 + os.Getpid()%50_000 + int(displays.Add(1)))
	if err := os.MkdirAll(filepath.Dir(x11), 0o700); err != nil {
		p.t.Fatal(err)
	}
	os.Chmod(filepath.Dir(x11), 0o777|os.ModeSticky) // fails if another user has made it, who has done so
	p.listens("unix", x11+p.display)
	p.listens("unix", "@"+x11+p.display)
}

// hears counts the datagrams to a socket, such as that of the system log, and answers senders that have an address. It returns
// the port.
func (p *prison) hears(network, address string) (port string) {
	p.t.Helper()
	c, err := net.ListenPacket(network, address)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { c.Close() })
	go func() {
		for buf := make([]byte, 99); ; p.reached.Add(1) {
			_, from, err := c.ReadFrom(buf)
			if err != nil {
				return
			}
			if to, ok := from.(*net.UDPAddr); ok {
				c.WriteTo([]byte(secretText), to)
			}
		}
	}()
	if a, ok := c.LocalAddr().(*net.UDPAddr); ok {
		port = fmt.Sprint(a.Port)
	}
	return port
}

// shares makes shared memory of System V with a secret, as a database does.
func (p *prison) shares() {
	p.t.Helper()
	id, err := unix.SysvShmGet(unix.IPC_PRIVATE, 4096, unix.IPC_CREAT|0o600)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { unix.SysvShmCtl(id, unix.IPC_RMID, nil) })
	memory, err := unix.SysvShmAttach(id, 0, 0)
	if err != nil {
		p.t.Fatal(err)
	}
	copy(memory, secretText)
	if err := unix.SysvShmDetach(memory); err != nil {
		p.t.Fatal(err)
	}
	p.segment = id
}

// opensTerminal opens a terminal as a person has, and counts what programs write to it.
func (p *prison) opensTerminal() {
	p.t.Helper()
	ptmx, tty, err := pty.Open()
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { ptmx.Close(); tty.Close() })
	p.tty = tty.Name()
	go func() {
		for buf := make([]byte, 99); ; p.reached.Add(1) {
			if _, err := ptmx.Read(buf); err != nil {
				return
			}
		}
	}()
}

// fill replaces what a script names by its values. victim is the process that it must not touch.
func (p *prison) fill(script, victim string) string {
	return strings.NewReplacer(
		"$BASE", filepath.Dir(p.user), "$PORT", p.tcp, "$VICTIM", victim, "$ABSTRACT", "lashd-escapes-"+filepath.Base(filepath.Dir(p.user)),
		"$SOCKET", p.socket, "$X11", x11+p.display, "$NAMES", p.names, "$TTY", p.tty, "$SEGMENT", fmt.Sprint(p.segment),
	).Replace(script)
}

// python wraps a program of Python, so that each of its errors is an answer.
func python(program string) string { return "python3 - <<'END'\n" + program + "\nEND" }

// connecting is a Python program that connects a socket and prints what it reads.
func connecting(family, address string) string {
	return python("import socket\ns=socket.socket(socket." + family + ",socket.SOCK_STREAM)\ns.settimeout(2)\ns.connect(" + address + ")\nprint(s.recv(99))")
}

// calling is a Python program that makes a system call and prints its result with a word.
func calling(call string) string {
	return python("import ctypes,struct\nl=ctypes.CDLL(None,use_errno=True)\nr=" + call + "\nprint('done\\n' if r>=0 else 'refused\\n',end='')")
}

// escapes are scripts. Outside of a sandbox they do no lasting harm to the machine. In one, they must not print the canary, nor the word in never if there is one, nor change anything outside.
// The first script is one whose effect takes time.
var escapes = []struct{ name, script, never string }{
	{"a program that stays", "setsid sh -c 'while sleep 0.1; do date +%N > left-$$; done' >/dev/null 2>&1 </dev/null & true", ""},
	{"read a key of ssh", "cat ~/.ssh/id_ed25519", ""},
	{"read cloud credentials", "cat ~/.aws/credentials ~/.config/gh/hosts.yml ~/.git-credentials ~/.netrc", ""},
	{"list and read a hidden directory", "ls -A ~/.gnupg; cat ~/.gnupg/*", "private"},
	{"read lashd's keys", "cat $BASE/data/keys.json; cat $BASE/data/*", ""},
	{"read through a symbolic link", "ln -s ~/.ssh/id_ed25519 l && cat l; rm -f l", ""},
	{"read through a hard link", "ln ~/.netrc h && cat h; rm -f h", ""},
	{"read through /proc/self/root", "cat /proc/self/root$BASE/user/.netrc", ""},
	{"read through the root of another process", "cat /proc/$VICTIM/root$BASE/user/.netrc /proc/$VICTIM/cwd/../.netrc", ""},
	{"read the environment of another process", "tr '\\0' '\\n' < /proc/$VICTIM/environ | grep SECRET", "SECRET="},
	{"read the memory of another process", python("a=int(open('/proc/$VICTIM/maps').readline().split('-')[0],16)\nm=open('/proc/$VICTIM/mem','rb')\nm.seek(a)\nprint('done' if m.read(1) else 'none')"), "done"},
	{"copy a hidden directory with tar", "tar cf - ~/.ssh | tr -d '\\0'", ""},
	{"read with io_uring", calling("l.syscall(425,8,ctypes.create_string_buffer(120))"), "done"},
	{"unmount what hides a secret", "umount ~/.ssh; umount -l ~/.netrc; cat ~/.ssh/id_ed25519 ~/.netrc", ""},
	{"mount something", "mkdir -p m && mount --bind m m && echo done && umount m", "done"},
	{"a user namespace", "unshare -Ur true && echo done", "done"},
	{"a user namespace with clone", calling("l.syscall(56,0x10000000|17,0,0,0,0)"), "done"},
	{"a mount namespace", "unshare -m true && echo done", "done"},
	{"the namespaces of another process", "nsenter -t $VICTIM -m true && echo done; nsenter -t 1 -m true && echo done", "done"},
	{"chroot", "chroot / true && echo done", "done"},
	{"write to another directory of the user", "echo $BASE > ~/other/file", ""},
	{"write a start-up file of the shell", "echo evil >> ~/.bashrc", ""},
	{"delete outside of the workspace", "rm -rf ~/other", ""},
	{"change modes outside", "chmod -R 777 ~/other ~/.ssh", ""},
	{"change times outside", "touch -d 2001-01-01 ~/other/file", ""},
	{"write to the system", "(: >> /etc/passwd) && echo done; mkdir /usr/lashd-test && echo done && rmdir /usr/lashd-test", "done"},
	{"write to kernel settings", "(: >> /proc/sys/kernel/core_pattern) && echo done", "done"},
	{"write to cgroups", "for d in /sys/fs/cgroup /sys/fs/cgroup/unified; do mkdir $d/lashd-test && echo done && rmdir $d/lashd-test; done", "done"},
	{"read a raw disk", "for d in /dev/[svx]d[a-z]; do head -c 1 $d && echo done; done", "done"},
	{"make a device", "mknod d b 8 0 && echo done", "done"},
	{"connect to a server of the host", connecting("AF_INET", "('127.0.0.1',$PORT)"), ""},
	{"connect by fast open", python("import socket\ns=socket.socket()\ns.sendto(b'x',0x20000000,('127.0.0.1',$PORT))\nprint(s.recv(99))"), ""},
	{"connect by MPTCP", python("import socket\ns=socket.socket(socket.AF_INET,socket.SOCK_STREAM,262)\ns.settimeout(2)\ns.connect(('127.0.0.1',$PORT))\nprint(s.recv(99))"), ""},
	{"connect over IPv6", connecting("AF_INET6", "('::ffff:127.0.0.1',$PORT)"), ""},
	{"send by UDP", python("import socket\ns=socket.socket(socket.AF_INET,socket.SOCK_DGRAM)\ns.settimeout(.5)\ns.sendto(b'x',('127.0.0.1',$NAMES))\nprint(s.recv(99))"), ""},
	{"look up a name", python("import socket\ns=socket.socket(socket.AF_INET,socket.SOCK_DGRAM)\ns.settimeout(.5)\ns.connect(('127.0.0.1',$NAMES))\ns.send(bytes.fromhex('123401000001000000000000')+b'\\7example\\3com\\0\\0\\1\\0\\1')\nprint(s.recv(99))"), ""},
	{"connect to a socket such as docker's", connecting("AF_UNIX", "'$BASE/user/docker.sock'"), ""},
	{"connect to the daemon", python("import socket\nsocket.socket(socket.AF_UNIX,socket.SOCK_STREAM).connect('$SOCKET')\nprint('done')"), "done"},
	{"connect to an abstract socket", connecting("AF_UNIX", "'\\0$ABSTRACT'"), ""},
	{"a vsock socket", python("import socket\nsocket.socket(socket.AF_VSOCK,socket.SOCK_STREAM)\nprint('done')"), "done"},
	{"a packet socket", python("import socket\nsocket.socket(socket.AF_PACKET,socket.SOCK_RAW)\nprint('done')"), "done"},
	{"trace another process", calling("l.ptrace(16,$VICTIM,0,0)"), "done"},
	{"signal another process", "kill -9 $VICTIM", ""},
	{"limit another process", calling("l.syscall(302,$VICTIM,7,(ctypes.c_ulong*2)(1,1),None)"), "done"},
	{"slow another process down", "renice 19 -p $VICTIM", ""},
	{"the keyring of the kernel", calling("l.syscall(250,0,-3,1,0,0)"), "done"},
	{"kernel programs", calling("l.syscall(321,0,struct.pack('4I48x',2,4,4,1),64)"), "done"},
	{"page faults of its own", calling("l.syscall(323,1)"), "done"},
	{"performance events", calling("l.syscall(298,struct.pack('2I4QQ16x',1,64,0,0,0,0,0x61),0,-1,-1,0)"), "done"},
	{"type into the terminal", python("import fcntl,os,pty\npid,fd=pty.fork()\nif pid==0:\n  try:\n    fcntl.ioctl(0,0x5412,b'x')\n    print('\\ndone')\n  finally:\n    os._exit(0)\n\ntry:\n  while True: print(os.read(fd,99).decode())\nexcept OSError: pass"), "done"},
	{"read the first process", "cat /proc/1/maps /proc/1/environ /proc/1/task/*/maps", "r-xp"},
	{"take a file of the first process", calling("l.syscall(438,l.syscall(434,1,0),3,0)"), "done"},
	{"read the arguments of another process", "tr '\\0' ' ' < /proc/$VICTIM/cmdline", "sleep"},
	{"sockets that send to any path", python("import socket\nsocket.socketpair(socket.AF_UNIX,socket.SOCK_DGRAM)\nprint('done')"), "done"},
	{"connect through a link", "ln -sfn $BASE/user k; " + connecting("AF_UNIX", "'k/docker.sock'"), ""},
	{"connect through the first process", connecting("AF_UNIX", "'/proc/1/root$BASE/user/docker.sock'"), ""},
	{"use sudo or su", "sudo -n true && echo done; su -s /bin/sh -c true nobody && echo done", "done"},
	{"type into another terminal", "echo x > $TTY", ""},
	{"use a file that the daemon has open", "for f in /proc/self/fd/*; do case $f in */[0123]) ;; *) readlink $f | grep -v ^/proc && echo done;; esac; done", "done"},
	{"become another user", python("import os\nos.setuid(os.getuid()+7)\nprint('done')"), "done"},
	{"change git's configuration", "git config core.fsmonitor evil; echo evil >> .git/config", ""},
	{"plant a hook", "mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit; mv .git/hooks .git/x; mv .git g", ""},
	{"shared memory of System V", python("import ctypes\nl=ctypes.CDLL(None)\nl.shmat.restype=ctypes.c_void_p\na=l.shmat($SEGMENT,None,0o10000)\nprint('refused' if a==2**64-1 else ctypes.string_at(a))"), ""},
	{"move to another cgroup", "for d in /sys/fs/cgroup /sys/fs/cgroup/unified; do (echo $$ > $d/cgroup.procs) && echo done; done", "done"},
	{"a network namespace", "unshare -n true && echo done", "done"},
	{"a process namespace", "unshare -p -f true && echo done", "done"},
	{"new privileges by a setuid program", "grep -q 'NoNewPrivs:.0' /proc/self/status && echo done", "done"},
	{"connect to D-Bus", connecting("AF_UNIX", "'$BASE/user/bus'"), ""},
	{"find services by the environment", "env | grep -E '^(DBUS_SESSION_BUS_ADDRESS|DISPLAY|SSH_AUTH_SOCK)=' && echo done", "done"},
	{"connect to X11", connecting("AF_UNIX", "'$X11'"), ""},
	{"connect to X11 by its abstract socket", connecting("AF_UNIX", "'\\0$X11'"), ""},
	{"send to the system log", python("import socket\ns=socket.socket(socket.AF_UNIX,socket.SOCK_DGRAM)\ns.sendto(b'x','$BASE/user/log')\nprint('done')"), "done"},
	{"make start-up files", "echo evil > ~/.profile; mkdir -p ~/.config/autostart; echo evil > ~/.config/autostart/x; echo evil > ~/.ssh/rc; (: >> /var/spool/cron/lashd-test) && echo done", "done"},
	{"change what editors start", "echo evil >> .vscode/tasks.json; echo evil >> .envrc; mkdir -p .agents/plugins/evil; mv .vscode v; mv .agents a; rm -f .envrc", ""},
	{"take git's configuration from elsewhere", "mkdir -p e && cp -r .git/. e && echo ../e > .git/commondir", ""},
	{"start threads without end", python(bomb), "unlimited"},
	{"write a file without end", python("import tempfile\nfor d in '.', '/tmp':\n  try:\n    with tempfile.TemporaryFile(dir=d) as f:\n      f.seek(1<<34)\n      f.write(b'x')\n    print('unlimited')\n  except OSError as e: print(e)"), "unlimited"},
}

// bomb is a Python program that starts threads until the system refuses one. It prints how many it has, or that there is no limit.
const bomb = `import os, threading
threading.stack_size(1 << 16)
wait, n = threading.Event(), 0
try:
    while n < 6000:
        threading.Thread(target=wait.wait, daemon=True).start()
        n += 1
except RuntimeError:
    pass
print(n if n < 6000 else "unlimited", flush=True)
os._exit(0)`

// fires reports whether the output of an escape shows that it got out. never is a word that shows it, too.
func fires(never, out string) bool {
	return strings.Contains(out, secretText) || never != "" && slices.Contains(strings.Fields(out), never)
}

// alive reports whether a child of this process runs.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

// outside describes the files that no command may change, with mode, time and content, and the priority of the victim.
func (p *prison) outside() string {
	var all strings.Builder
	for _, name := range []string{
		"user/other", "user/other/file", "user/.bashrc", "user/.ssh", "user/.ssh/id_ed25519", "user/work/.git", "user/work/.git/config", "user/work/.git/hooks", "user/work/.git/hooks/pre-commit",
		"user/work/.git/commondir", "user/.profile", "user/.config/autostart/x", "user/.ssh/rc", "user/work/.vscode/tasks.json", "user/work/.envrc", "user/work/.agents/plugins/evil",
		"user/work/.agents/rules.md",
	} {
		path := filepath.Join(filepath.Dir(p.user), name)
		info, err := os.Stat(path)
		if err != nil {
			fmt.Fprintln(&all, name, "gone")
			continue
		}
		data := []byte(nil)
		if !info.IsDir() {
			data, _ = os.ReadFile(path)
			fmt.Fprintln(&all, name, info.Mode(), info.ModTime().Format(time.RFC3339Nano), string(data))
			continue
		}
		fmt.Fprintln(&all, name, info.Mode())
	}
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.victim.Process.Pid))
	if fields := strings.Fields(string(stat)); len(fields) > 18 {
		fmt.Fprintln(&all, "nice", fields[18])
	}
	return all.String()
}
