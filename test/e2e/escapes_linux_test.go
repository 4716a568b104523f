package e2e

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// secretText is in every secret. Whatever prints it has escaped.
const secretText = "CANARY-7f3a"

// prison is a home outside of /tmp with secrets, servers that must not be reached, and a process that must not be touched.
type prison struct {
	*home
	reached atomic.Int32 // connections to the servers
	tcp     string       // port of the TCP server
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
		"data/config.toml": "script = \"" + filepath.Join(base, "data", "script.json") + "\"\nsandbox = \"workspace\"\n", "data/script.json": `{"turns":[]}`,
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
	p.env = append(p.env, "DBUS_SESSION_BUS_ADDRESS=unix:path="+filepath.Join(base, "user", "bus"), "DISPLAY=:"+p.display(), "SSH_AUTH_SOCK="+filepath.Join(base, "user", "docker.sock"))
	p.hears(filepath.Join(base, "user", "log"))
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

// display listens where a server of X11 does, and returns its number.
func (p *prison) display() string {
	p.t.Helper()
	number := fmt.Sprint(1000 + os.Getpid()%50_000)
	path := "/tmp/.X11-unix/X" + number
	if err := os.MkdirAll(filepath.Dir(path), 0o1777); err != nil {
		p.t.Fatal(err)
	}
	p.listens("unix", path)
	p.listens("unix", "@"+path)
	return number
}

// hears counts the datagrams to a socket such as that of the system log.
func (p *prison) hears(path string) {
	p.t.Helper()
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { c.Close() })
	go func() {
		for buf := make([]byte, 99); ; p.reached.Add(1) {
			if _, _, err := c.ReadFrom(buf); err != nil {
				return
			}
		}
	}()
}

// fill replaces what a script names by its values.
func (p *prison) fill(script string) string {
	return strings.NewReplacer(
		"$BASE", filepath.Dir(p.user), "$PORT", p.tcp, "$VICTIM", fmt.Sprint(p.victim.Process.Pid), "$ABSTRACT", "lashd-escapes-"+filepath.Base(filepath.Dir(p.user)),
		"$SOCKET", p.socket, "$X11", "/tmp/.X11-unix/X"+fmt.Sprint(1000+os.Getpid()%50_000),
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
	return python("import ctypes\nl=ctypes.CDLL(None,use_errno=True)\nr=" + call + "\nprint('done' if r>=0 else 'refused')")
}

// escapes are scripts. Outside of a sandbox they do no lasting harm to the machine. In one, they must not print the canary, nor the word in never if there is one, nor change anything outside.
var escapes = []struct{ name, script, never string }{
	{"read a key of ssh", "cat ~/.ssh/id_ed25519", ""},
	{"read cloud credentials", "cat ~/.aws/credentials ~/.config/gh/hosts.yml ~/.git-credentials ~/.netrc", ""},
	{"list and read a hidden directory", "ls -A ~/.gnupg; cat ~/.gnupg/*", "private"},
	{"read lashd's keys", "cat $BASE/data/keys.json; cat $BASE/data/*", ""},
	{"read through a symbolic link", "ln -s ~/.ssh/id_ed25519 l && cat l; rm -f l", ""},
	{"read through a hard link", "ln ~/.netrc h && cat h; rm -f h", ""},
	{"read through /proc/self/root", "cat /proc/self/root$BASE/user/.netrc", ""},
	{"read through the root of another process", "cat /proc/$VICTIM/root$BASE/user/.netrc /proc/$VICTIM/cwd/../.netrc", ""},
	{"read the environment of another process", "tr '\\0' '\\n' < /proc/$VICTIM/environ | grep SECRET", "SECRET="},
	{"read the memory of another process", python("print(open('/proc/$VICTIM/mem','rb').read(1))"), "b'"},
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
	{"send by UDP", python("import socket\ns=socket.socket(socket.AF_INET,socket.SOCK_DGRAM)\ns.sendto(b'x',('192.0.2.1',53))\nprint('done')"), "done"},
	{"look up a name", "getent hosts example.com && echo done", "done"},
	{"connect to a socket such as docker's", connecting("AF_UNIX", "'$BASE/user/docker.sock'"), ""},
	{"connect to the daemon", connecting("AF_UNIX", "'$SOCKET'"), ""},
	{"connect to an abstract socket", connecting("AF_UNIX", "'\\0$ABSTRACT'"), ""},
	{"a vsock socket", python("import socket\nsocket.socket(socket.AF_VSOCK,socket.SOCK_STREAM)\nprint('done')"), "done"},
	{"a packet socket", python("import socket\nsocket.socket(socket.AF_PACKET,socket.SOCK_RAW)\nprint('done')"), "done"},
	{"trace another process", calling("l.ptrace(16,$VICTIM,0,0)"), "done"},
	{"signal another process", "kill -9 $VICTIM", ""},
	{"limit another process", calling("l.syscall(302,$VICTIM,7,(ctypes.c_ulong*2)(1,1),None)"), "done"},
	{"slow another process down", "renice 19 -p $VICTIM", ""},
	{"the keyring of the kernel", calling("l.syscall(250,0,-3,1,0,0)"), "done"},
	{"kernel programs", calling("l.syscall(321,0,ctypes.create_string_buffer(64),64)"), "done"},
	{"page faults of its own", calling("l.syscall(323,1)"), "done"},
	{"performance events", calling("l.syscall(298,ctypes.create_string_buffer(128),0,-1,-1,0)"), "done"},
	{"type into the terminal", python("import fcntl\nfcntl.ioctl(0,0x5412,b'x')\nprint('done')"), "done"},
	{"read the first process", "head -c 9 /proc/1/mem; cat /proc/1/maps /proc/1/environ /proc/1/task/*/maps", "r-xp"},
	{"take a file of the first process", calling("l.syscall(438,l.syscall(434,1,0),3,0)"), "done"},
	{"read the arguments of another process", "tr '\\0' ' ' < /proc/$VICTIM/cmdline", "sleep"},
	{"sockets that send to any path", python("import socket\nsocket.socketpair(socket.AF_UNIX,socket.SOCK_DGRAM)\nprint('done')"), "done"},
	{"connect through a link", "ln -sfn $BASE/user k; " + connecting("AF_UNIX", "'k/docker.sock'"), ""},
	{"connect through the first process", connecting("AF_UNIX", "'/proc/1/root$BASE/user/docker.sock'"), ""},
	{"use sudo or su", "sudo -n true && echo done; su -c true nobody && echo done", "done"},
	{"type into another terminal", "for t in /dev/pts/[0-9]*; do echo x > $t && echo done; done; ls /dev/pts", "done"},
	{"use a file that the daemon has open", "for f in /proc/self/fd/*; do case $f in */[0123]) ;; *) readlink $f | grep -v ^/proc && echo done;; esac; done", "done"},
	{"become another user", python("import os\nos.setuid(os.getuid()+7)\nprint('done')"), "done"},
	{"change git's configuration", "git config core.fsmonitor evil; echo evil >> .git/config", ""},
	{"plant a hook", "mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit; mv .git/hooks .git/x; mv .git g", ""},
	{"shared memory of System V", python("import ctypes\nl=ctypes.CDLL(None)\nprint('done' if any(l.shmat(i,None,0)!=-1 for i in range(64)) else 'none')"), "done"},
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
	{"start processes without end", python(unlimited), "unlimited"},
	{"write a file without end", python("import resource\nprint('limited' if resource.getrlimit(resource.RLIMIT_FSIZE)[0]!=resource.RLIM_INFINITY else 'unlimited')"), "unlimited"},
	{"a program that stays", "setsid sh -c 'sleep 2; echo evil > left' >/dev/null 2>&1 </dev/null & true", ""},
}

// unlimited is a Python program that prints whether the number of processes is limited. It starts none.
const unlimited = `import os, resource
ids = int(open('/proc/sys/kernel/pid_max').read())
own = resource.getrlimit(resource.RLIMIT_NPROC)[0]
print('limited' if ids < 5000 or os.getuid() and own < 5000 else 'unlimited')`

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
