#!/bin/bash
# What a container of binlake runs, by its first argument:
#
#   driver ARGS...   spark-submit in client mode, which is how Spark on Kubernetes starts a driver (cluster mode)
#   executor         an executor that the variables SPARK_* describe, which is how a driver on Kubernetes asks for one
#   ARGS...          binlake ARGS...
#
# The names of the variables and the forms of the commands are those that Spark's KubernetesClusterManager expects.
set -eu

# Hadoop asks for the name of the user. A cluster may run the container as one that /etc/passwd does not have.
if ! getent passwd "$(id -u)" > /dev/null && [ -w /etc/passwd ]; then
  echo "binlake-$(id -u):x:$(id -u):$(id -g):binlake:/home/binlake:/bin/false" >> /etc/passwd
fi

case ${1:-} in
  driver)
    shift
    exec "$SPARK_HOME/bin/spark-submit" \
      --conf "spark.driver.bindAddress=$SPARK_DRIVER_BIND_ADDRESS" \
      --conf "spark.executorEnv.SPARK_DRIVER_POD_IP=$SPARK_DRIVER_BIND_ADDRESS" \
      --deploy-mode client "$@"
    ;;
  executor)
    # SPARK_JAVA_OPT_0, SPARK_JAVA_OPT_1 ... in the order of their numbers; each is one option, with its spaces.
    options=()
    while IFS= read -r name; do options+=("${!name}"); done < <(compgen -v SPARK_JAVA_OPT_ | sort -t_ -k4n)
    classes=$SPARK_HOME/jars/*
    [ -n "${SPARK_EXTRA_CLASSPATH:-}" ] && classes=$SPARK_EXTRA_CLASSPATH:$classes
    [ -n "${HADOOP_CONF_DIR:-}" ] && classes=$HADOOP_CONF_DIR:$classes
    [ -n "${SPARK_CONF_DIR:-}" ] && classes=$SPARK_CONF_DIR:$classes
    exec "$JAVA_HOME/bin/java" ${options[@]+"${options[@]}"} \
      "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY" -cp "$classes" \
      org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
      --driver-url "$SPARK_DRIVER_URL" --executor-id "$SPARK_EXECUTOR_ID" --cores "$SPARK_EXECUTOR_CORES" \
      --app-id "$SPARK_APPLICATION_ID" --hostname "$SPARK_EXECUTOR_POD_IP" \
      --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" --podName "$SPARK_EXECUTOR_POD_NAME"
    ;;
  *)
    exec binlake "$@"
    ;;
esac
