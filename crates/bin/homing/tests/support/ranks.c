/* Each rank tells its number, where it is, and the sum of all numbers, which it has from the others. Each sends a MiB to
 * each before. With a word, rank 1 dies at once. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define MIB (1 << 20)

int main(int count, char **words) {
    int rank, size, sum, length;
    char host[MPI_MAX_PROCESSOR_NAME];
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_processor_name(host, &length);
    if (count > 1 && rank == 1) raise(SIGKILL);
    MPI_Alltoall(calloc(size, MIB), MIB, MPI_CHAR, calloc(size, MIB), MIB, MPI_CHAR, MPI_COMM_WORLD);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("rank %d of %d on %s: %d\n", rank, size, host, sum);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
