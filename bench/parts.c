/* Each rank reads its part of a file by MPI-IO, the first rank the first bytes, and tells how long that took. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define BLOCK (1 << 20)

int main(int count, char **words) {
    int rank, size, length;
    char host[MPI_MAX_PROCESSOR_NAME];
    MPI_File file;
    MPI_Offset all, at;
    char *block = malloc(BLOCK);
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_processor_name(host, &length);
    if (MPI_File_open(MPI_COMM_WORLD, words[1], MPI_MODE_RDONLY, MPI_INFO_NULL, &file) != MPI_SUCCESS) {
        fprintf(stderr, "%s: %s cannot be opened\n", host, words[1]);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_File_get_size(file, &all);
    MPI_Offset begin = all / size * rank, end = rank + 1 < size ? all / size * (rank + 1) : all;
    MPI_Barrier(MPI_COMM_WORLD);
    double since = MPI_Wtime();
    for (at = begin; at < end; at += BLOCK) {
        MPI_Offset want = end - at < BLOCK ? end - at : BLOCK;
        if (MPI_File_read_at(file, at, block, want, MPI_BYTE, MPI_STATUS_IGNORE) != MPI_SUCCESS) MPI_Abort(MPI_COMM_WORLD, 1);
    }
    printf("part %d %s %lld %.3f\n", rank, host, (long long)(end - begin), MPI_Wtime() - since);
    fflush(stdout);
    MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}
