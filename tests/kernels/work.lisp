; SPDX-License-Identifier: GPL-2.0-only
; GNU Common Lisp's own profiler over a computation, and its table of the functions: their ticks.
; Times are in hundredths of a second.
(in-package "SYSTEM")
(load "/lib/gcl_profile.lsp")
(set-up-profile 4000000)
(defun work (n) (let ((x 0)) (dotimes (i n) (setq x (mod (+ x (* i i)) 1009))) x))
(defvar start (get-internal-run-time))
(prof #x1000 90)
(work 300000)
(profile 0 0)
(format t "~%used ~a~%" (- (get-internal-run-time) start))
(display-prof)
(terpri)
(bye)
