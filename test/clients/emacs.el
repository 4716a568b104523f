;;; emacs.el --- plays a script with jsonrpc.el  -*- lexical-binding: t -*-
;; emacs --batch -l emacs.el SCRIPT WORKSPACE LASHD ARGS... prints what it receives to stdout.
(require 'jsonrpc)
(require 'cl-lib)

(defvar client-kept nil "What steps have kept, by name.")
(defvar client-events nil "What came, the newest first.")
(defvar client-seen 0 "How many of the events were awaited or passed over.")

(defun client-say (&rest line)
  (princ (decode-coding-string (json-serialize line :null-object :json-null :false-object :json-false) 'utf-8))
  (terpri))

(defun client-fill (value)
  "VALUE with what was kept in the place of its names."
  (cond ((stringp value) (let ((kept (assoc value client-kept))) (if kept (cdr kept) value)))
        ((vectorp value) (cl-map 'vector #'client-fill value))
        ((consp value) (mapcar #'client-fill value))
        (t value)))

(defun client-keep (step value)
  (cl-loop for (name path) on (plist-get step :keep) by #'cddr do
           (let ((at value))
             (seq-doseq (key path) (setq at (plist-get at (intern (concat ":" key)))))
             (push (cons (substring (symbol-name name) 1) at) client-kept))))

(defun client-call (connection step)
  (let ((method (plist-get step :call)))
    (condition-case failure
        (let ((result (jsonrpc-request connection (intern method) (plist-get step :params) :timeout 60)))
          (client-say :call method :result result)
          (client-keep step result))
      (jsonrpc-error
       (let ((about (cddr failure)))
         (client-say :call method
                     :error (list :code (alist-get 'jsonrpc-error-code about)
                                  :message (alist-get 'jsonrpc-error-message about)
                                  :data (alist-get 'jsonrpc-error-data about))))))))

(defun client-await (step)
  (let (found (limit (+ (float-time) 60)))
    (while (not found)
      (if (= client-seen (length client-events))
          (progn
            (when (> (float-time) limit) (error "Waited in vain for %s" (plist-get step :await)))
            (accept-process-output nil 0.02))
        (cl-incf client-seen)
        (let ((event (nth (- (length client-events) client-seen) client-events)))
          (when (equal (plist-get event :type) (plist-get step :await))
            (setq found event)))))
    (client-keep step found)))

(defun client-tell ()
  (dolist (event (reverse client-events)) (client-say :event event)))

(defun client-play (script workspace &rest command)
  (push (cons "$cwd" workspace) client-kept)
  (let* ((process (make-process :name "lashd" :command command :connection-type 'pipe :coding 'utf-8-emacs-unix
                                :noquery t :stderr (get-buffer-create "*lashd stderr*")))
         (connection (make-instance 'jsonrpc-process-connection :name "lashd" :process process
                                    :notification-dispatcher
                                    (lambda (_ method params)
                                      (when (eq method 'session/event) (push params client-events))))))
    (with-temp-buffer
      (insert-file-contents script)
      (while (not (eobp))
        (let ((step (client-fill (json-parse-buffer :object-type 'plist :false-object :json-false))))
          (cond ((plist-get step :call) (client-call connection step))
                ((plist-get step :await) (client-await step))
                ((plist-get step :notify) (jsonrpc-notify connection (intern (plist-get step :notify)) nil))
                (t (client-tell) (send-string-to-terminal "") (signal-process (emacs-pid) 9))))
        (skip-chars-forward "\n")))
    (let ((limit (+ (float-time) 60)))
      (while (and (process-live-p process) (< (float-time) limit)) (accept-process-output process 0.02)))
    (client-tell)))

(let ((arguments command-line-args-left))
  (setq command-line-args-left nil)
  (apply #'client-play arguments))
