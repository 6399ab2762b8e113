#!/bin/sh
# supervise.sh COMMAND...: runs a command in a container, and decides by its exit code, which Docker and a Deployment of
# Kubernetes cannot: both start again after every failure or after none.
#
#   70, 75            somebody else took over; an outage that may pass: started again after SUPERVISE_PAUSE seconds
#   129 to 192        killed by a signal (out of memory): started again, too
#   0                 the end
#   any other code    waits for a person: the container stays, without the command, so its health check fails and nobody
#                     starts the command again; restart the container when the cause is gone
#
# SIGTERM and SIGINT end the command in order (binlake finishes the batch in hand); its exit code is that of the script.
set -u
pause=${SUPERVISE_PAUSE:-30}
running='' stopping=''

stop() {
  stopping=yes
  [ -z "$running" ] || kill -s TERM "$running" 2> /dev/null
}
trap stop TERM INT

# Sets $code to the exit code of a command in the background, which gets the signals.
run() {
  "$@" &
  running=$!
  [ -z "$stopping" ] || stop
  while wait "$running"; code=$?; kill -s 0 "$running" 2> /dev/null; do :; done
  running=''
}

say() { echo "supervise: $*" >&2; }

while :; do
  run "$@"
  [ -z "$stopping" ] && [ "$code" != 0 ] || exit "$code"
  case $code in
    70 | 75 | 129 | 1[3-8][0-9] | 19[0-2])
      say "exit code $code: starts again in $pause s"
      again=$code
      run sleep "$pause"
      [ -z "$stopping" ] || exit "$again"
      ;;
    *)
      say "exit code $code waits for a person; restart the container when the cause is gone"
      again=$code
      while [ -z "$stopping" ]; do run sleep 86400; done
      exit "$again"
      ;;
  esac
done
