vim9script
# Plays a script with a channel of Vim in the mode lsp: g:client_args has SCRIPT WORKSPACE LASHD ARGS... Prints what it receives to
# stdout.
var kept: dict<any> = {'$cwd': g:client_args[1]}
var events: list<any> = []
var at = 0

def Say(line: dict<any>)
  writefile([json_encode(line)], '/dev/stdout', 'a')
enddef

def Heard(channel: channel, message: any)
  if get(message, 'method', '') == 'session/event'
    add(events, message.params)
  endif
enddef

# Fill puts what was kept in the place of its names.
def Fill(value: any): any
  if type(value) == v:t_string
    return get(kept, value, value)
  elseif type(value) == v:t_list || type(value) == v:t_dict
    return map(value, (_, v) => Fill(v))
  endif
  return value
enddef

def Keep(step: dict<any>, value: any)
  for [name, path] in items(get(step, 'keep', {}))
    var v = value
    for key in path
      v = v[key]
    endfor
    kept[name] = v
  endfor
enddef

def Call(channel: channel, step: dict<any>)
  var answer = ch_evalexpr(channel, {'method': step.call, 'params': step.params}, {'timeout': 60000})
  if has_key(answer, 'error')
    Say({'call': step.call, 'error': answer.error})
    return
  endif
  Say({'call': step.call, 'result': answer.result})
  Keep(step, answer.result)
enddef

def Await(step: dict<any>)
  var began = reltime()
  while true
    while at < len(events)
      at += 1
      if events[at - 1].type == step.await
        Keep(step, events[at - 1])
        return
      endif
    endwhile
    if reltimefloat(reltime(began)) > 60.0
      throw 'waited in vain: ' .. step.await
    endif
    sleep 5m
  endwhile
enddef

def Tell()
  for event in events
    Say({'event': event})
  endfor
enddef

def Play()
  var job = job_start(g:client_args[2 :], {'in_mode': 'lsp', 'out_mode': 'lsp', 'out_cb': Heard, 'err_io': 'null'})
  var channel = job_getchannel(job)
  for line in readfile(g:client_args[0])
    var step = Fill(json_decode(line))
    if has_key(step, 'call')
      Call(channel, step)
    elseif has_key(step, 'await')
      Await(step)
    elseif has_key(step, 'notify')
      ch_sendexpr(channel, {'method': step.notify, 'params': {}})
    else
      Tell()
      system('kill -9 ' .. getpid())
    endif
  endfor
  var began = reltime()
  while job_status(job) == 'run' && reltimefloat(reltime(began)) < 60.0
    sleep 5m
  endwhile
  Tell()
enddef

try
  Play()
  qall!
catch
  writefile([v:exception .. ' ' .. v:throwpoint], '/dev/stderr', 'a')
  cquit!
endtry
